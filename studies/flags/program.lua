-- Tables, strings, closures, coroutines, errors, numbers and the collector, each said in a line.
local words = {}
for i = 1, 20000 do words[i] = (i * 7919) % 10007 .. "x" end
table.sort(words)
local text = table.concat(words)
print(#text, text:sub(1, 50))
print(pcall(error, "boom"))
local squares = coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i * i) end end)
local sum = 0
for square in squares do sum = sum + (square or 0); if square == 100 then break end end
print(sum)
print(string.format("%5.2f|%q|%x", 3.14159, "a\nb", 255), ("hello world"):gsub("o", "0"), ("x"):rep(10))
print(select("#", table.unpack({1, 2, 3})), math.floor(2.7), 7 // 2, 7 % 3, 2 ^ 10, "10" + 5)
print(pcall(function() local nothing = nil; return nothing.field end))
print(load("return 1 + 1")(), ("Upper and Lower"):upper(), ("Upper and Lower"):lower())
local parts = setmetatable({}, {__index = function(_, key) return key .. "!" end, __len = function() return 42 end})
print(parts.some, #parts, next({}), rawlen({1, 2}), type(print), tostring(1e15), math.tointeger(3.0))
local deep = 0
local function down(n) if n > 0 then return down(n - 1) end deep = deep + 1 end
down(100000)
print(deep, pcall(string.rep), ("%d"):format(3), utf8.char(228, 8364))
collectgarbage()
print(collectgarbage("count") > 0)
