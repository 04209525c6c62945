# Crystal: classes, exceptions, fibers and channels, hashes, regular expressions.
abstract class Shape
  abstract def area(x : Int32) : Int32
end
class Square < Shape
  def area(x : Int32) : Int32
    raise "too large" if x > 5
    x * x
  end
end
h = Hash(String, Int32).new(0)
5000.times { |i| h["k#{i % 37}"] += i }
puts h.keys.sort.first(4), h["k3"]
ch = Channel(Int32).new
4.times { |i| spawn { ch.send((1..1000).sum * i) } }
puts 4.times.map { ch.receive }.to_a.sort
begin
  puts Square.new.area(3); puts Square.new.area(9)
rescue e
  puts "caught #{e.message} #{e.backtrace.size > 1}"
ensure
  puts "ensured"
end
puts "a1b22".scan(/\d+/).map(&.[0])
