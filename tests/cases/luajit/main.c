/* LuaJIT's interpreter, which is all hand-written: its parts have a symbol each and share one unwind entry, control runs
   from one into the next, and a table of 16-bit distances, which no relocation describes, leads from opcode to code. */
#include <luajit-2.1/lauxlib.h>
#include <luajit-2.1/lua.h>
#include <luajit-2.1/lualib.h>
#include <stdio.h>

static const char script[] =
    "local numbers = {}\n"
    "for i = 1, 200 do numbers[i] = i * 7919 % 1009 end\n"
    "table.sort(numbers)\n"
    "local sum = 0\n"
    "for i, value in ipairs(numbers) do sum = sum + value * i end\n"
    "print(sum)\n"
    "local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end\n"
    "print(fibonacci(22))\n"
    "local squares = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i * i) end end)\n"
    "for _ = 1, 5 do io.write(squares(), ' ') end\n"
    "print(select(2, pcall(error, 'thrown')))\n"
    "local vector = setmetatable({}, {__index = function(_, k) return k .. '!' end, __call = function(_, x) return -x end,\n"
    "                                 __concat = function() return 'joined' end, __len = function() return 3 end})\n"
    "print(vector.field, vector(4), vector .. 'x')\n"
    "print(('%5.2f %q %x'):format(2.5, 'a', 255), (string.gsub('abc def', '(%w+)', '<%1>')))\n"
    "local bits = 0\n"
    "for i = 1, 300000 do bits = bit.bxor(bits, i) + i % 3 end\n"
    "print(bits, math.floor(-2.5), math.max(3, 9, 4), 7 % -3, 2 ^ 10)\n"
    "local function several(...) return select('#', ...), ... end\n"
    "print(several(nil, 'b', {} ~= nil))\n"
    "goto done\n"
    "print('never')\n"
    "::done:: print(tostring(1e15), tonumber('0x10'), #'length')\n";

int main(void) {
    for (int compiled = 0; compiled < 2; compiled++) {
        lua_State *lua = luaL_newstate();
        luaL_openlibs(lua);
        if (luaL_dostring(lua, compiled ? "jit.on()" : "jit.off()") || luaL_dostring(lua, script)) {
            puts(lua_tostring(lua, -1));
            return 1;
        }
        lua_close(lua);
    }
    return 0;
}
