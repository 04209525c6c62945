import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What asks something of the virtual machine itself: classes loaded and compiled, garbage, exceptions that it makes of signals, threads. */
public class Workload {
    public static void main(String[] arguments) throws Exception {
        System.out.println("calls " + fibonacci(27));
        exceptions();
        System.out.println("groups " + groups());
        System.out.println("threads " + threads());
        System.out.println("text " + text());
        System.gc();
        System.out.println("pattern " + Pattern.matches("(a+)+b", "a".repeat(20) + "b"));
        System.out.println(String.format("numbers %.5f %s", Math.sin(1) * Math.pow(2, 0.5), BigInteger.TEN.pow(60).mod(BigInteger.valueOf(97))));
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static int deep(int n) {
        return n == 0 ? 0 : 1 + deep(n - 1);
    }

    /** Each of them begins as a signal, or at a page that is guarded. */
    static void exceptions() {
        int[] three = new int[3];
        List<Runnable> failures = List.of(
            () -> deep(100_000_000),
            () -> ((Object) null).hashCode(),
            () -> three[fibonacci(5)] = 1,
            () -> System.out.println(1 / (three.length - 3)),
            () -> System.out.println((Integer) (Object) "text"));
        for (Runnable failure : failures) {
            try {
                failure.run();
            } catch (Throwable thrown) {
                System.out.println("thrown " + thrown.getClass().getName());
            }
        }
    }

    static int groups() {
        Map<Integer, List<String>> groups = IntStream.range(0, 50_000).boxed()
            .collect(Collectors.groupingBy(i -> i % 17, TreeMap::new, Collectors.mapping(i -> "s" + i, Collectors.toList())));
        return groups.values().stream().mapToInt(group -> group.get(group.size() - 1).hashCode() % 1000).sum();
    }

    static long threads() throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        List<Callable<Long>> jobs = new ArrayList<>();
        for (int job = 0; job < 8; job++) {
            byte mark = (byte) job;
            jobs.add(() -> garbage(mark));
        }
        long sum = 0;
        for (Future<Long> result : pool.invokeAll(jobs)) {
            sum += result.get();
        }
        pool.shutdown();
        return sum;
    }

    /** Most of it dies young, a tenth is kept for a while. */
    static long garbage(byte mark) {
        List<byte[]> kept = new ArrayList<>();
        long sum = 0;
        for (int i = 0; i < 2000; i++) {
            byte[] bytes = new byte[4096 + i];
            bytes[i % 100] = mark;
            sum += bytes[i % 100];
            if (i % 10 == 0) {
                kept.add(bytes);
            }
        }
        return sum + kept.size();
    }

    static int text() {
        var text = new StringBuilder();
        for (int i = 0; i < 100_000; i++) {
            text.append((char) ('a' + i % 26));
        }
        return text.toString().hashCode();
    }
}
