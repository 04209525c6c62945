// Unions and jump tables, errors, threads, hash maps, sorting, formatted text.
const std = @import("std");

/// To standard output, by the system call alone: the library's way there changes from release to release.
fn say(comptime format: []const u8, arguments: anytype) void {
    var buffer: [400]u8 = undefined;
    const text = std.fmt.bufPrint(&buffer, format, arguments) catch unreachable;
    _ = std.os.linux.write(1, text.ptr, text.len);
}

const Shape = union(enum) {
    circle: f64,
    square: f64,
    text: []const u8,
    fn area(self: Shape) f64 {
        return switch (self) {
            .circle => |r| r * r * 3.0,
            .square => |s| s * s,
            .text => |t| @floatFromInt(t.len),
        };
    }
};

const Failure = error{ Odd, Large };

noinline fn half(n: u32) Failure!u32 {
    if (n > 1000) return Failure.Large;
    if (n % 2 == 1) return Failure.Odd;
    return n / 2;
}

noinline fn kind(n: u32) []const u8 {
    return switch (n % 11) {
        0 => "zero",
        1 => "one",
        2, 3 => "few",
        4 => "four",
        5 => "five",
        6 => "six",
        7 => "seven",
        else => "many",
    };
}

fn work(out: *u64, from: u64) void {
    var sum: u64 = from;
    for (0..200000) |i| sum = (sum *% 31) +% i;
    out.* = sum;
}

fn less(_: void, a: u32, b: u32) bool {
    return a < b;
}

pub fn main() !void {
    var arena = std.heap.ArenaAllocator.init(std.heap.page_allocator);
    defer arena.deinit();
    const allocator = arena.allocator();
    var map = std.StringHashMap(u32).init(allocator);
    for (0..5000) |i| {
        const entry = try map.getOrPut(kind(@intCast(i * 7)));
        if (!entry.found_existing) entry.value_ptr.* = 0;
        entry.value_ptr.* += 1;
    }
    say("{d} {d}\n", .{ map.get("few").?, map.get("many").? });
    var odd: u32 = 0;
    var large: u32 = 0;
    var sum: u32 = 0;
    for (0..1100) |i| {
        if (half(@intCast(i))) |n| {
            sum += n;
        } else |err| switch (err) {
            Failure.Odd => odd += 1,
            Failure.Large => large += 1,
        }
    }
    say("{d} {d} {d}\n", .{ sum, odd, large });
    const shapes = [_]Shape{ .{ .circle = 2.0 }, .{ .square = 3.0 }, .{ .text = "hello" } };
    var area: f64 = 0;
    for (shapes) |shape| area += shape.area();
    say("{d:.3}\n", .{area});
    var results: [4]u64 = undefined;
    var threads: [4]std.Thread = undefined;
    for (&threads, &results, 0..) |*thread, *out, i| thread.* = try std.Thread.spawn(.{}, work, .{ out, i });
    for (threads) |thread| thread.join();
    for (results) |result| say("{x} ", .{result});
    var numbers: [300]u32 = undefined;
    var state: u32 = 7;
    for (&numbers) |*n| {
        state = state *% 1103515245 +% 12345;
        n.* = state >> 16;
    }
    std.mem.sort(u32, &numbers, {}, less);
    say("\n{d} {d} {d}\n", .{ numbers[0], numbers[150], numbers[299] });
    const text = try std.fmt.allocPrint(allocator, "{s}-{any}", .{ kind(5), numbers[0..3] });
    say("{s} {x}\n", .{ text, std.hash.Wyhash.hash(1, text) });
}
