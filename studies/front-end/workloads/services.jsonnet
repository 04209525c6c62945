// Configuration of many services out of few templates: inheritance, comprehensions, sorting, formats and strings.
local count = std.parseInt(std.extVar('N'));
local base = {
  name: error 'a name is needed',
  replicas: 1,
  labels: { app: $.name, tier: if $.replicas > 2 then 'front' else 'back' },
  ports: [{ name: 'p%d' % i, port: 8000 + i * $.replicas } for i in std.range(0, $.replicas)],
  environment+: { NAME: std.asciiUpper($.name), ID: std.md5($.name) },
  address:: std.join('.', [$.name, self.labels.tier, 'example']),
  command: std.format('%s --port=%05d --ratio=%.3f', [$.address, self.ports[0].port, $.replicas / 7]),
};
local kinds = {
  web: base { replicas: 3, environment+: { PATH: '/srv/' + self.NAME } },
  queue: base { ports+: [{ name: 'admin', port: 9000 }] },
  store: base { local me = self, replicas: 2, volume: { size: '%dGi' % std.length(me.name), path: std.split(me.command, ' ')[0] } },
};
local names = std.objectFields(kinds);
local services = [
  kinds[names[i % 3]] { name: '%s-%d' % [names[i % 3], i * 7919 % 1000], [if i % 5 == 0 then 'debug']: true }
  for i in std.range(1, count)
];
local by_name = std.sort(services, function(s) s.name);
local words = std.split(std.join(' ', [s.command for s in services]), ' ');
local fibonacci(n) = if n < 2 then n else fibonacci(n - 1) + fibonacci(n - 2);
{
  services: { [s.name]: s for s in std.uniq(by_name, function(s) s.name) },
  total: std.foldl(function(sum, s) sum + std.length(s.ports), services, 0),
  words: std.length(std.set(words)),
  long: std.filter(function(word) std.length(word) > 20, std.set(words)),
  text: std.manifestIni({ main: { ['k%d' % i]: by_name[i % count].address for i in std.range(0, 9) }, sections: {} }),
  number: fibonacci(12),
  merged: std.mergePatch(services[0], { labels: { tier: null, owner: 'me' } }),
}
