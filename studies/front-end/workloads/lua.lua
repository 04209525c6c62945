-- Strings, patterns, tables, closures, coroutines, metatables, errors, loaded chunks: the same answers everywhere.
local state = 12345
local function below(limit)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % limit
end

local Point = {}
Point.__index = Point
Point.__add = function(a, b) return setmetatable({ x = a.x + b.x, y = a.y + b.y }, Point) end
Point.__eq = function(a, b) return a.x == b.x and a.y == b.y end
Point.__tostring = function(p) return string.format("(%d, %.2f)", p.x, p.y) end

local function words(count)
    return coroutine.wrap(function()
        for i = 1, count do coroutine.yield("w" .. below(300) .. string.char(97 + i % 26)) end
    end)
end

local sum = 0
for round = 1, 400 do
    local seen, list = {}, {}
    for word in words(60) do
        seen[word] = (seen[word] or 0) + 1
        list[#list + 1] = word:upper():reverse()
    end
    table.sort(list, function(a, b) return a > b end)
    local text = table.concat(list, ",")
    for key, digits in text:gmatch("(%u)(%d+)") do sum = sum + #key + tonumber(digits) end
    text = text:gsub("W(%d)", "<%1>"):lower():sub(-200)
    local point = setmetatable({ x = round, y = sum % 7 / 3 }, Point) + setmetatable({ x = 1, y = 0.5 }, Point)
    sum = sum + #tostring(point) + (point == point and 1 or 0) + #string.pack("<i4z", round, text)
    local chunk = load("local a, b = ... ; return function(c) return (a + b) * c // 3 ~ " .. round .. " end")
    sum = sum + chunk(round, below(9))(below(5))
    local fine, message = pcall(function() local nothing; return nothing.field end)
    sum = sum + (fine and 0 or #message) + select("#", table.unpack(list, 1, 20)) + (text:find("9>", 1, true) or 0)
    if round % 100 == 0 then collectgarbage() end
end
print(sum, math.tointeger(sum % 1000), utf8.char(955, 8364), os.time { year = 2020, month = 1, day = 2, hour = 12 } > 0)
