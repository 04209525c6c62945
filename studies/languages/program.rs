// Rust: trait objects, threads, maps, panics that are caught.
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

trait Shape {
    fn area(&self) -> f64;
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        3.0 * self.0 * self.0
    }
}

fn fibonacci(n: u32) -> u64 {
    if n < 2 { n.into() } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.5))];
    println!("{:.3}", shapes.iter().map(|s| s.area()).sum::<f64>());
    let map: BTreeMap<u64, String> = (0..1000).map(|i| (i * 7919 % 1009, format!("{i:x}"))).collect();
    println!("{} {:?}", map.len(), map.range(5..9).collect::<Vec<_>>());
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (15..19).zip(std::iter::repeat(sender)).collect();
    let threads = threads.into_iter().map(|(n, sender)| thread::spawn(move || sender.send(fibonacci(n)).unwrap()));
    threads.collect::<Vec<_>>().into_iter().for_each(|t| t.join().unwrap());
    println!("{}", receiver.iter().sum::<u64>());
    println!("{}", std::panic::catch_unwind(|| fibonacci(3) / (fibonacci(2) - 1)).is_err());
    println!("{:?} {:?}", "x12".parse::<i32>(), "3.25e2".parse::<f64>());
}
