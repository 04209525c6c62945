// Calls, exceptions, switches, iterators, delegates and a garbage collector that walks the stack.
using System;
using System.Collections.Generic;
using System.Linq;

interface IShape { double Area(); }
class Square : IShape { double side; public Square(double x) { side = x; } public double Area() { return side * side; } }
class Circle : IShape { double radius; public Circle(double x) { radius = x; } public double Area() { return radius * radius * 3.0; } }

class Program {
    static int count;
    static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    static int Checked(int x) {
        if (x > 5) throw new ArgumentException("large");
        return x * 3;
    }

    static int Caught(int x) {
        try { return Checked(x); } catch (ArgumentException) { return -1; } finally { count++; }
    }

    static int Hash(object o) { return o.GetHashCode() == 0 ? 1 : 2; }
    static int OfNothing(object o) { try { return Hash(o); } catch (NullReferenceException) { return 7; } }

    static string Name(int x) {
        switch (x) {
            case 0: return "zero";
            case 1: return "one";
            case 2: return "two";
            case 3: return "three";
            case 4: return "four";
            default: return "many";
        }
    }

    static IEnumerable<int> Squares(int n) { for (int i = 0; i < n; i++) yield return i * i; }

    static object Allocate(int n) {
        object last = null;
        for (int i = 0; i < n; i++) last = new object[10];
        return last;
    }

    static void Main() {
        Console.WriteLine(Fibonacci(24));
        Console.WriteLine(Enumerable.Range(0, 12).Sum(x => Caught(x)) + " " + count);
        Console.WriteLine(OfNothing(null));
        var lists = new Dictionary<string, List<int>>();
        for (int i = 0; i < 20000; i++) {
            List<int> list;
            if (!lists.TryGetValue(Name(i % 8), out list)) lists[Name(i % 8)] = list = new List<int>();
            list.Add(i);
        }
        foreach (var key in lists.Keys.OrderBy(x => x)) Console.WriteLine(key + " " + lists[key].Sum());
        var shapes = Enumerable.Range(0, 1000).Select(i => i % 2 == 0 ? (IShape)new Square(i) : new Circle(i));
        Console.WriteLine(shapes.Sum(shape => shape.Area()));
        Console.WriteLine(Squares(100).Where(x => x % 3 == 0).Aggregate((a, b) => a ^ b));
        Allocate(1000000);
        Console.WriteLine(GC.CollectionCount(0) > 0);
        try { Checked(10); } catch (Exception e) { Console.WriteLine(e.StackTrace.Contains("Checked")); }
    }
}
