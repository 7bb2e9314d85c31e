//! A pipeline like a crawler's, without a network: one greenlet names pages, several fetch and digest them at once, and the
//! results come out in order, with a bound on how many are under way.
//!
//! ```console
//! cargo run --release --example pipeline
//! cargo run --release --example pipeline -- --pages 1000 --workers 50 --ahead 100
//! ```
//!
//! Each page takes a moment to arrive (a sleep, different for each page) and a moment of computing (SHA-256, on the thread
//! pool, so that nobody waits for it). The producer parks when `--ahead` pages are under way: memory is bounded however many
//! there are. Each page travels with a promise; the results of those promises stand in a second queue, in order, and that is all it
//! takes to get them out in order.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, value_parser};
use greenroom::group::Group;
use greenroom::queue::Queue;
use greenroom::{AsyncResult, Promise, hub, promise, sleep};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use sha2::{Digest, Sha256};

mod command_line;

/// Fetches made-up pages with several greenlets, in order and in bounded memory
#[derive(Clone, Parser)]
#[command(name = "pipeline", after_help = "Exit codes: 0, and 2 for a bad value.")]
struct Options {
    /// Pages to fetch [default: 200, with --quick 40]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000_000))]
    pages: Option<u32>,

    /// Greenlets that fetch
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = value_parser!(u32).range(1..=100_000))]
    workers: u32,

    /// Pages that may be under way or waiting to be read at once
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = value_parser!(u32).range(1..=1_000_000))]
    ahead: u32,

    /// How long the slowest page takes to arrive
    #[arg(long, value_name = "MS", default_value_t = 20)]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000))]
    latency_ms: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,

    /// A moment in all: few pages
    #[arg(long)]
    quick: bool,
}

/// A page that is to be fetched, and where its digest goes.
type Job = (u32, Promise<String>);

fn main() -> ExitCode {
    let options = match command_line::parse::<Options>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::fail(&*error),
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let pages = options.pages.unwrap_or(if options.quick { 40 } else { 200 });
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} pages")?;
    let progress = ProgressBar::new(pages.into()).with_style(style);

    let (jobs, in_order) = (Queue::<Job>::unbounded(), Queue::<AsyncResult<String>>::bounded(options.ahead as usize));
    let greenlets = Group::new();
    greenlets.spawn({
        let (jobs, in_order) = (jobs.clone(), in_order.clone());
        move || produce(pages, &jobs, &in_order)
    });
    for _ in 0..options.workers {
        let (jobs, slowest) = (jobs.clone(), Duration::from_millis(options.latency_ms));
        greenlets.spawn(move || work(&jobs, slowest));
    }

    let start = Instant::now();
    let mut digests = Vec::new();
    for (page, result) in (0..).zip(&in_order) {
        let digest = result.get()?;
        if !options.json && page < 5 {
            progress.suspend(|| writeln!(io::stdout(), "page {page}: {digest}"))?;
        }
        if digests.len() < 5 {
            digests.push(digest);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    greenlets.join(None);

    let took = start.elapsed();
    let alone: Duration = (0..pages).map(|page| latency(page, Duration::from_millis(options.latency_ms))).sum();
    let times = alone.as_secs_f64() / took.as_secs_f64();
    if options.json {
        let report = json!({
            "pages": pages,
            "workers": options.workers,
            "ahead": options.ahead,
            "took_ms": took.as_secs_f64() * 1e3,
            "latencies_ms": alone.as_secs_f64() * 1e3,
            "times": times,
            "first_digests": digests,
        });
        writeln!(io::stdout(), "{report}")?;
    } else {
        writeln!(
            io::stdout(),
            "…\n{pages} pages by {} greenlets in {took:.0?}: their latencies alone add up to {alone:.1?}, {times:.1} times that",
            options.workers
        )?;
    }
    Ok(())
}

/// Names the pages, in order. Parks while as many are under way as may be.
fn produce(pages: u32, jobs: &Queue<Job>, in_order: &Queue<AsyncResult<String>>) {
    for page in 0..pages {
        let (digest, result) = promise();
        in_order.put(result).expect("nobody else closes it");
        jobs.put((page, digest)).expect("nobody else closes it");
    }
    jobs.close();
    in_order.close();
}

/// Fetches pages until there are no more.
fn work(jobs: &Queue<Job>, slowest: Duration) {
    for (page, digest) in jobs {
        let body = fetch(page, slowest);
        digest.set(hub().threadpool().apply(hex_of_sha256, (&body[..],)));
    }
}

/// Takes its time, as a network does.
fn fetch(page: u32, slowest: Duration) -> String {
    sleep(latency(page, slowest));
    format!("<h1>Page {page}</h1>\n").repeat(1_000)
}

/// Different for each page, from a tenth of the slowest up.
fn latency(page: u32, slowest: Duration) -> Duration {
    slowest * (1 + page.wrapping_mul(2_654_435_761) % 10) / 10
}

fn hex_of_sha256(body: &str) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}
