//! How many transactions a load generator says it made: pgbench, YCSB, wrk, sysbench, redis-benchmark, ab.

use std::sync::LazyLock;

use regex::Regex;

/// What counts in one tool's output. Where a tool prints several, one for each operation, all of them count.
static COUNTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?m)^number of transactions actually processed: ([0-9]+)",
        r"(?m)^\[(?:[A-Z][A-Z-]*)\], Operations, ([0-9]+)",
        r"(?m)^\s*([0-9]+) requests in [0-9.]+\w+,",
        r"(?m)^\s*transactions:\s+([0-9]+)\s+\(",
        r"(?m)^\s*([0-9]+) requests completed in ",
        r"(?m)^Complete requests:\s+([0-9]+)",
    ]
    .map(|pattern| Regex::new(pattern).expect("a constant pattern"))
    .into()
});

/// The number of transactions, if the output is one of a known load generator and there were any.
pub fn transactions(stdout: &str) -> Option<f64> {
    let total = |pattern: &Regex| -> f64 {
        pattern
            .captures_iter(stdout)
            // YCSB counts how often it closed its connections as well.
            .filter(|found| !found[0].starts_with("[CLEANUP]"))
            .filter_map(|found| found[1].parse::<f64>().ok())
            .sum()
    };
    COUNTS.iter().map(total).find(|count| *count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::transactions;

    #[test]
    fn each_tool_is_understood() {
        let pgbench = "scaling factor: 1\nnumber of transactions actually processed: 25021\n\
                       number of failed transactions: 0 (0.000%)\ntps = 12510.4 (without initial connection time)\n";
        assert_eq!(transactions(pgbench), Some(25_021.0));
        let fixed = "number of transactions actually processed: 4000/4000\n";
        assert_eq!(transactions(fixed), Some(4000.0));
        let ycsb = "[OVERALL], RunTime(ms), 812\n[OVERALL], Throughput(ops/sec), 1231.5\n[READ], Operations, 949\n\
                    [READ], AverageLatency(us), 480.1\n[CLEANUP], Operations, 1\n[UPDATE], Operations, 51\n\
                    [READ-FAILED], Operations, 0\n";
        assert_eq!(transactions(ycsb), Some(1000.0));
        let wrk = "  2 threads and 10 connections\n  12345 requests in 2.00s, 10.02MB read\nRequests/sec:   6171.24\n";
        assert_eq!(transactions(wrk), Some(12_345.0));
        let sysbench = "    queries:                             40000  (3999.02 per sec.)\n    transactions:                        \
                        2500   (249.94 per sec.)\n";
        assert_eq!(transactions(sysbench), Some(2500.0));
        let redis = "====== SET ======\n  100000 requests completed in 1.23 seconds\n====== GET ======\n  50000 requests \
                     completed in 0.61 seconds\n";
        assert_eq!(transactions(redis), Some(150_000.0));
        assert_eq!(transactions("Complete requests:      1000\n"), Some(1000.0));
    }

    #[test]
    fn what_is_none_of_them_has_no_transactions() {
        assert_eq!(transactions("done in 3 s\n"), None);
        assert_eq!(transactions("number of transactions actually processed: 0\n"), None);
    }
}
