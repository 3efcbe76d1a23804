//! Prints the results.

use crate::observer::Counts;
use crate::processes::Figures;
use crate::quiet::Books;
use crate::soak::Soak;
use crate::workers::workers;

/// The figures of a server at rest.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) books: Books,
    pub(crate) figures: Figures,
}

/// Prints the outcomes of requests for each wire.
pub(crate) fn print_requests(soak: &Soak) {
    let mut rows: Vec<(&str, Counts)> = Vec::new();
    for (worker, (name, _)) in workers().enumerate() {
        match rows.last_mut().filter(|(last, _)| *last == name) {
            Some((_, counts)) => *counts += soak.counts(worker),
            None => rows.push((name, soak.counts(worker))),
        }
    }
    let mut all = Counts::default();
    rows.iter().for_each(|(_, counts)| all += *counts);
    rows.push(("all", all));
    println!(
        "\n{:28} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "requests", "answered", "refused", "cancelled", "cut"
    );
    for (name, counts) in rows {
        println!(
            "{name:28} {:>9} {:>9} {:>9} {:>9} {:>9}",
            counts.requests, counts.answered, counts.refused, counts.cancelled, counts.cut
        );
    }
}

/// Prints the figures of the server after the warm-up and at the end.
pub(crate) fn print_server(warm: &Rest, end: &Rest) {
    println!("\n{:28} {:>9} {:>9}", "server at rest", "warm", "end");
    let rows: [(&str, [u64; 2]); 6] = [
        ("requests started", [warm.books.started, end.books.started]),
        ("requests ended", [warm.books.ended, end.books.ended]),
        ("requests running", [warm.books.running, end.books.running]),
        (
            "file descriptors",
            [warm.figures.descriptors, end.figures.descriptors].map(|it| it as u64),
        ),
        (
            "threads",
            [warm.figures.threads, end.figures.threads].map(|it| it as u64),
        ),
        (
            "resident memory, KiB",
            [warm.figures.memory, end.figures.memory].map(|it| it as u64 >> 10),
        ),
    ];
    for (name, [warm, end]) in rows {
        println!("{name:28} {warm:>9} {end:>9}");
    }
}
