// D: interfaces, delegates, exceptions, ranges, regular expressions, a thread, the garbage collector.
import core.memory, core.thread, std.algorithm, std.array, std.conv, std.format, std.range, std.regex, std.stdio;

interface Shape { int area(int x); }
class Square : Shape {
    int area(int x) {
        if (x > 5)
            throw new Exception("too large");
        return x * x;
    }
    int twice(int x) { return x * 2; }
}

void main() {
    Shape shape = new Square;
    auto twice = &(new Square).twice;
    writeln(shape.area(3), " ", twice(4));
    try
        shape.area(9);
    catch (Exception error)
        writeln(error.msg);
    auto numbers = iota(1, 200).map!(x => x * 7919 % 1009).array;
    numbers.sort();
    writeln(numbers[0 .. 8], numbers.filter!(x => x & 1).sum);
    string[int] last;
    foreach (number; numbers)
        last[number % 10] = number.to!string;
    writeln(last.length, format(" %08.3f", 3.14159), " a1b22".matchAll(`\d+`).map!(x => x.hit));
    auto thread = new Thread({ writeln("in a thread"); });
    thread.start();
    thread.join();
    foreach (i; 0 .. 1000)
        (new int[](1000))[0] = i;
    GC.collect();
    switch (last[3]) {
        case "one": writeln(1); break;
        default: writeln(last[3]);
    }
}
