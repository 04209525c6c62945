// What a configuration language is used for: services, deployments, alerts and dashboards of a site, made of templates, checked, sorted, and printed as text in
// several languages. -V size=N says how many services there are.
local size = std.parseInt(std.extVar('size'));
local random(seed) = (seed * 16807 + 11) % 2147483647;
local word(seed) = std.join('', [std.char(97 + ((seed * (i + 3)) % 26)) for i in std.range(0, 3 + seed % 7)]);

local base = {
  name: error 'a service has a name',
  replicas: 1,
  labels: { app: $.name, tier: if $.critical then 'front' else 'back' },
  critical:: false,
  ports: [{ name: 'http', port: 8000 + i } for i in std.range(0, $.replicas % 3)],
  env: { [std.asciiUpper(k)]: std.toString($.settings[k]) for k in std.objectFields($.settings) },
  settings:: {},
  assert self.replicas > 0 : 'nothing runs',
};
local critical = { critical:: true, replicas: super.replicas + 2, settings+:: { retries: 5, 'time-out': 2.5 } };
local monitored = { labels+: { monitored: 'yes' }, alerts: [
  { alert: '%s-%s' % [$.name, k], expr: 'rate(%(name)s{tier="%(tier)s"}[5m]) > %(limit).3f' % { name: $.name, tier: $.labels.tier, limit: std.length(k) / 7 } }
  for k in ['errors', 'latency', 'saturation']
] };

local service(i) =
  local seed = random(random(i + 1));
  local plain = base { name: word(seed), replicas: 1 + seed % 4, settings:: { level: ['debug', 'info', 'warn'][seed % 3], id: i, ratio: seed % 100 / 100 } };
  (if seed % 3 == 0 then plain + critical else plain) + (if seed % 2 == 0 then monitored else {});

local services = std.sort([service(i) for i in std.range(1, size)], function(s) s.name);
local byTier = std.foldl(function(all, s) all { [s.labels.tier]+: [s.name] }, services, {});
local escape(text) = std.escapeStringJson(text);
local dashboard(s) = std.mergePatch(
  { title: std.asciiUpper(std.substr(s.name, 0, 1)) + std.substr(s.name, 1, 99), rows: [{ height: 250 + 10 * i, panel: p.name } for i in std.range(0, 1) for p in s.ports] },
  { rows: if s.critical then null else [], tags: std.set(std.stringChars(s.name)) }
);

{
  'services.json': std.manifestJsonEx(services, '  '),
  'site.yaml': std.manifestYamlDoc({ tiers: byTier, names: std.uniq([s.name for s in services]) }),
  'site.ini': std.manifestIni({ main: { size: size }, sections: { [s.name]: s.env for s in services } }),
  'alerts.txt': std.lines([escape(a.expr) for s in services if std.objectHas(s, 'alerts') for a in s.alerts]),
  dashboards: std.map(dashboard, std.filter(function(s) std.length(s.ports) > 1, services)),
  checks: {
    total: std.foldl(function(sum, s) sum + s.replicas, services, 0),
    words: std.length(std.split(std.join(' ', [s.name for s in services]), ' ')),
    shared: std.setInter(std.set(std.stringChars(services[0].name)), std.set(std.stringChars(services[size - 1].name))),
    sum: std.md5(std.join(',', [s.name + std.toString(s.env) for s in services])),
  },
}
