function P(x, y) { this.x = x; this.y = y; }
P.prototype.add = function (o) { return new P(this.x + o.x, this.y + o.y); };
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
var words = "amber basket copper dolphin ember falcon garnet harbor indigo".split(" ");
var seed = 12345, count = {}, lines = [];
function next(n) { seed = (seed * 1103 + 12345) % 1000003; return seed % n; }
for (var i = 0; i < N; i++) {
  var w = words[next(words.length)] + next(200);
  count[w] = (count[w] || 0) + 1;
  lines.push(w + " " + (i % 97) + "," + next(1000));
}
var keys = Object.keys(count).sort(function (a, b) { return count[b] - count[a] || (a < b ? -1 : 1); });
var p = new P(0, 0), q = new P(1, 2);
for (var i = 0; i < 6 * N; i++) p = p.add(q);
var hits = 0;
for (var i = 0; i < lines.length; i++) {
  var m = /^([a-z]+)(\d+) (\d+),(\d+)$/.exec(lines[i]);
  if (m && m[1].length > 5) hits += parseInt(m[4], 10);
}
var text = JSON.stringify(keys.map(function (k) { return { name: k, n: count[k], l: [k.length, k.toUpperCase()] }; }));
var back = JSON.parse(text);
print(keys.length, p.x, p.y, hits, text.length, back.length, fib(20), lines.sort().slice(0, 3).join(";"));
