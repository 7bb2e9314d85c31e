//! The examples, run as programs: exit codes, one-line complaints, JSON, and what goes where.
//!
//! `cargo test` builds the examples first; `cargo test --test examples` alone does not.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use serde_json::Value;

/// `target/<profile>/examples/<name>`, seen from this test in `target/<profile>/deps`.
fn example(name: &str) -> Command {
    let test = env::current_exe().expect("a test knows where it is");
    let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
    let mut program = profile.join("examples").join(name);
    program.set_extension(env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{program:?} is missing: cargo build --examples");
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

fn run(name: &str, arguments: &[&str]) -> Output {
    example(name).args(arguments).output().expect("the example starts")
}

fn run_with_stdin(name: &str, arguments: &[&str], input: &str) -> Output {
    let mut command = example(name);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the example starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    stdin.write_all(input.as_bytes()).expect("the example reads its input");
    drop(stdin);
    child.wait_with_output().expect("the example ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("examples print UTF-8")
}

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "standard error: {stderr}");
}

/// Exit code 2, nothing on standard output, and one line that names what was wrong.
#[track_caller]
fn assert_refused(output: &Output, named: &str) {
    assert_code(output, 2);
    assert_eq!(text(&output.stdout), "");
    let stderr = text(&output.stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(named), "{stderr}");
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert_code(output, 0);
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

/// One JSON object a line.
#[track_caller]
fn json_lines(output: &Output) -> Vec<Value> {
    assert_code(output, 0);
    let lines = text(&output.stdout).lines();
    lines.map(|line| serde_json::from_str(line).expect("a JSON object in each line")).collect()
}

#[track_caller]
fn assert_picture(path: &Path) -> String {
    let picture = fs::read_to_string(path).expect("the picture was drawn");
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"), "{picture}");
    assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    picture
}

/// A path of this test run's own.
fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn hello_says_what_happens() {
    let output = run("hello", &[]);
    assert_code(&output, 0);
    let stdout = text(&output.stdout);
    let place = |line| stdout.find(line).unwrap_or_else(|| panic!("no {line:?} in {stdout}"));
    let lines = ["clock:  tick", "adder:  done", "main:   the sum is 3", "main:   an hour", "killed"];
    assert!(lines.map(place).is_sorted(), "{stdout}");
}

#[test]
fn help_exits_with_0() {
    for (name, arguments) in [
        ("stall", &["--help"][..]),
        ("stall", &["-h"]),
        ("offload_cost", &["--help"]),
        ("pipeline", &["--help"]),
        ("set_password", &["--help"]),
        ("set_password", &["make", "--help"]),
        ("set_password", &["verify", "--help"]),
        ("set_password", &["needs-update", "--help"]),
    ] {
        let output = run(name, arguments);
        assert_code(&output, 0);
        assert!(text(&output.stdout).contains("Usage: "), "{name} {arguments:?}");
        assert_eq!(text(&output.stderr), "", "{name} {arguments:?}");
    }
}

#[test]
fn stall_names_a_bad_value_in_one_line() {
    for (arguments, named) in [
        (&["--interval-ms", "0"][..], "'0' for '--interval-ms"),
        (&["--interval-ms", "five"], "'five' for '--interval-ms"),
        (&["--interval-ms", "-5"], "-5"),
        (&["--rounds", "0"], "'0' for '--rounds"),
        (&["--rounds", "1.5"], "'1.5' for '--rounds"),
        (&["--iterations", "0"], "'0' for '--iterations"),
        (&["--iterations", "99999999999"], "'99999999999' for '--iterations"),
        (&["--jobs", "0"], "'0' for '--jobs"),
        (&["--threads", "0"], "'0' for '--threads"),
        (&["--threads", ""], "--threads"),
        (&["--svg"], "--svg"),
        (&["--compare", "--jobs", "0"], "'0' for '--jobs"),
        (&["--compare", "--threads", "2"], "--threads"),
        (&["--quik"], "--quik"),
        (&["quick"], "quick"),
    ] {
        assert_refused(&run("stall", arguments), named);
    }
}

/// Noticed before the measurement: this one would take hours.
#[test]
fn stall_notices_a_path_that_cannot_be_written_at_once() {
    let path = temporary("no/such/folder/stall.svg");
    let path = path.to_str().expect("the target folder has a UTF-8 name");
    let output = run("stall", &["--rounds", "100000", "--svg", path]);
    assert_refused(&output, path);
    let folder = temporary("");
    let folder = folder.to_str().expect("the target folder has a UTF-8 name");
    assert_refused(&run("stall", &["--rounds", "100000", "--svg", folder]), folder);
    assert_refused(&run("stall", &["--compare", "--rounds", "100000", "--svg", folder]), folder);
}

#[test]
fn stall_prints_one_json_object() {
    let figures = json(&run("stall", &["--quick", "--json"]));
    let figure = |name: &str| {
        let value = figures[name].as_f64();
        value.unwrap_or_else(|| panic!("{name} is no number in {figures}"))
    };
    for name in [
        "direct_max_ms",
        "offloaded_max_ms",
        "ratio",
        "cpu_ratio",
        "request_direct_ms",
        "request_offloaded_ms",
        "speedup_pbkdf2",
        "speedup_locked",
        "cores",
        "interval_ms",
        "iterations",
        "rounds",
    ] {
        assert!(figure(name) > 0.0, "{name} in {figures}");
    }
    let ratio = figure("direct_max_ms") / figure("offloaded_max_ms");
    assert!((figure("ratio") / ratio - 1.0).abs() < 1e-6, "{figures}");

    // No tick while the hub hashes: the longest gap holds the whole hash, which is all but the whole request.
    assert!(figure("direct_max_ms") > figure("request_direct_ms") * 0.9, "{figures}");
    // A ticker that sleeps for an interval can't tick more often.
    assert!(figure("offloaded_max_ms") >= figure("interval_ms"), "{figures}");
    assert!(figure("offloaded_p99_ms") >= figure("offloaded_p50_ms"), "{figures}");
    assert!(figure("offloaded_p50_ms") >= figure("interval_ms") * 0.99, "{figures}");
    assert!(figure("direct_worst_ms") >= figure("direct_max_ms"), "{figures}");
    assert!(figure("offloaded_worst_ms") >= figure("offloaded_max_ms"), "{figures}");
}

#[test]
fn stall_prints_a_table_and_draws_a_picture_when_asked() {
    let path = temporary("stall.svg");
    fs::write(&path, "what was there before, and longer than nothing").expect("tmp is writable");
    let arguments = ["--quick", "--rounds", "1", "--jobs", "3", "--svg", path.to_str().unwrap()];
    let output = run("stall", &arguments);
    assert_code(&output, 0);
    assert_eq!(text(&output.stderr), "", "no progress bar where there is no terminal");
    let stdout = text(&output.stdout);
    for words in ["on the hub", "offloaded", "gevent 25.9.1", "PBKDF2", "longest gap", "CPU"] {
        assert!(stdout.contains(words), "{words:?} in {stdout}");
    }
    let picture = assert_picture(&path);
    assert!(picture.contains("3 password hashes"), "{picture}");
}

/// Short, since all profiles have their turn.
const COMPARE: [&str; 6] = ["--compare", "--quick", "--rounds", "1", "--interval-ms", "1"];

#[test]
fn stall_compares_profiles_beside_each_number_of_hashes() {
    let rows = json_lines(&run("stall", &[&COMPARE[..], &["--json", "--iterations", "10000"]].concat()));
    let names = |jobs| -> Vec<_> {
        let rows = rows.iter().filter(|row| row["jobs"] == jobs);
        rows.map(|row| row["profile"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(1), names(10));
    assert_eq!(names(1).len() * 2, rows.len());
    assert!(names(1).contains(&"as gevent".to_owned()) && names(1).contains(&"default".to_owned()), "{rows:?}");
    for row in &rows {
        let figure = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {row}"));
        assert!(figure("longest_ms") >= figure("interval_ms"), "{row}");
        assert!(figure("longest_ms") <= figure("worst_ms"), "{row}");
        assert!(figure("p50_ms") <= figure("p999_ms") && figure("p999_ms") <= figure("worst_ms"), "{row}");
        assert!(figure("mean_latency_ms") <= figure("done_ms"), "{row}");
        assert_eq!(figure("iterations"), 10_000.0);
        assert!(figure("rounds") == 1.0 && figure("cores") >= 1.0, "{row}");
    }
}

#[test]
fn stall_draws_the_comparison() {
    let path = temporary("compare.svg");
    let own = ["--iterations", "1000", "--jobs", "2", "--svg", path.to_str().unwrap()];
    let output = run("stall", &[&COMPARE[..], &own].concat());
    assert_code(&output, 0);
    assert_eq!(text(&output.stderr), "", "no progress bar where there is no terminal");
    let picture = assert_picture(&path);
    for name in ["as gevent", "slice", "low priority", "cores only", "default", "idle priority"] {
        assert!(text(&output.stdout).contains(name) && picture.contains(name), "{name}");
    }
}

#[test]
fn offload_cost_gives_an_object_for_each_length_and_the_break_even() {
    let mut objects = json_lines(&run("offload_cost", &["--quick", "--rounds", "1", "--json"]));
    let last = objects.pop().expect("there are lines");
    for name in ["break_even_us", "break_even_cold_us"] {
        // On a machine that is busy otherwise there may be none.
        let job = last.get(name).unwrap_or_else(|| panic!("no {name} in {last}"));
        assert!(job.is_null() || job.as_f64() >= Some(1.0), "{last}");
    }
    let lengths: Vec<_> = objects.iter().map(|object| object["job_us"].as_f64().expect("a number")).collect();
    assert_eq!(lengths, [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
    for object in &objects {
        let figure = |name: &str| object[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {object}"));
        for name in ["inline_us", "hot_us", "cold_us", "gap_inline_us", "gap_offloaded_us", "cores"] {
            assert!(figure(name) > 0.0, "{name} in {object}");
        }
        assert_eq!(figure("rounds"), 1.0);
        // In a single round, the overhead is exactly what the trip takes longer.
        for way in ["hot", "cold"] {
            let longer = figure(&format!("{way}_us")) - figure("inline_us");
            assert!((figure(&format!("overhead_{way}_us")) - longer).abs() < 1e-3, "{object}");
        }
    }
}

#[test]
fn offload_cost_prints_a_table_and_draws_a_picture_when_asked() {
    let path = temporary("offload_cost.svg");
    let output = run("offload_cost", &["--quick", "--rounds", "1", "--svg", path.to_str().unwrap()]);
    assert_code(&output, 0);
    assert_eq!(text(&output.stderr), "", "no progress bar where there is no terminal");
    let stdout = text(&output.stdout);
    for words in ["round trip", "overhead", "gap", "100 ms", "Offloading pays when", "hot", "cold"] {
        assert!(stdout.contains(words), "{words:?} in {stdout}");
    }
    let picture = assert_picture(&path);
    assert!(picture.contains("round trip, hot") && picture.contains("gap, offloaded"), "{picture}");
}

#[test]
fn offload_cost_names_a_bad_value_in_one_line() {
    let folder = temporary("");
    let folder = folder.to_str().expect("the target folder has a UTF-8 name");
    for (arguments, named) in [
        (&["--rounds", "0"][..], "'0' for '--rounds"),
        (&["--rounds", "many"], "'many' for '--rounds"),
        (&["--rounds", "100000", "--svg", folder], folder),
        (&["--quik"], "--quik"),
    ] {
        assert_refused(&run("offload_cost", arguments), named);
    }
}

#[test]
fn set_password_makes_what_it_verifies() {
    let output = run("set_password", &["make", "--iterations", "1000", "lètmein", ""]);
    assert_code(&output, 0);
    let made: Vec<&str> = text(&output.stdout).lines().collect();
    let [encoded, of_nothing] = made[..] else { panic!("two lines: {made:?}") };
    assert!(encoded.starts_with("pbkdf2_sha256$1000$"), "{encoded}");

    assert_code(&run("set_password", &["verify", encoded, "lètmein"]), 0);
    assert_code(&run("set_password", &["verify", of_nothing, ""]), 0);
    let wrong = run("set_password", &["verify", encoded, "lètmeout"]);
    assert_code(&wrong, 1);
    assert_eq!(text(&wrong.stdout), "wrong\n");
    let some_wrong = run("set_password", &["verify", encoded, "a", "lètmein", "b"]);
    assert_code(&some_wrong, 1);
    assert_eq!(text(&some_wrong.stdout), "wrong\ncorrect\nwrong\n");
    assert_code(&run("set_password", &["verify", "!unusable", "lètmein"]), 1);
}

#[test]
fn set_password_gives_the_known_answer() {
    let arguments = ["make", "--iterations", "1000", "--salt", "seasalt", "lètmein"];
    let output = run("set_password", &arguments);
    let known = "pbkdf2_sha256$1000$seasalt$JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=\n";
    assert_eq!(text(&output.stdout), known);
}

#[test]
fn set_password_reads_standard_input() {
    let make = ["make", "--iterations", "10"];
    let output = run_with_stdin("set_password", &make, "one\r\ntwo\n\n four ");
    assert_code(&output, 0);
    let made: Vec<&str> = text(&output.stdout).lines().collect();
    let passwords = ["one", "two", "", " four "];
    assert_eq!(made.len(), passwords.len());
    for (encoded, password) in made.iter().zip(passwords) {
        assert_code(&run("set_password", &["verify", encoded, password]), 0);
        let from_stdin = format!("{password}\n");
        assert_code(&run_with_stdin("set_password", &["verify", encoded], &from_stdin), 0);
        assert_code(&run_with_stdin("set_password", &["verify", encoded, "-"], "wrong"), 1);
    }

    let mixed = ["make", "--iterations", "10", "zero", "-", "three"];
    let output = run_with_stdin("set_password", &mixed, "one\ntwo");
    assert_eq!(text(&output.stdout).lines().count(), 4);

    assert_refused(&run("set_password", &make), "standard input");
    assert_refused(&run("set_password", &[]), "standard input");
}

#[test]
fn set_password_makes_many_at_once() {
    let passwords: String = (0..500).map(|number| format!("password {number}\n")).collect();
    let make = ["--json", "make", "--iterations", "10"];
    let answer = json(&run_with_stdin("set_password", &make, &passwords));
    let encoded = answer["encoded"].as_array().expect("an array");
    assert_eq!(encoded.len(), 500);
    let last = encoded[499].as_str().expect("a string");
    assert_code(&run("set_password", &["verify", last, "password 499"]), 0);
    assert!(answer["longest_gap_ms"].as_f64() > Some(0.0), "{answer}");
}

#[test]
fn set_password_tells_what_needs_an_update() {
    let output = run("set_password", &["make", "--iterations", "1000", "pw"]);
    let encoded = text(&output.stdout).trim_end();
    let short_salt = "pbkdf2_sha256$1000$seasalt$JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=";
    let ask = ["needs-update", "--iterations", "1000", encoded, short_salt];
    assert_eq!(text(&run("set_password", &ask).stdout), "up to date\nneeds update\n");
    let answer = json(&run("set_password", &["needs-update", "--json", encoded]));
    assert_eq!(answer["needs_update"], serde_json::json!([true]));
}

#[test]
fn set_password_names_a_bad_value_in_one_line() {
    for (arguments, named) in [
        (&["make", "--iterations", "0", "pw"][..], "'0' for '--iterations"),
        (&["make", "--iterations", "many", "pw"], "'many' for '--iterations"),
        (&["make", "--salt", "", "pw"], "--salt"),
        (&["make", "--salt", "sea$alt", "pw"], "sea$alt"),
        (&["verify"], "<ENCODED>"),
        (&["verify", "sea$alt", "pw"], "sea$alt"),
        (&["verify", "two\nlines", "pw"], r"two\nlines"),
        (&["verify", "pbkdf2_sha256$1k$salt$hash", "pw"], "1k"),
        (&["needs-update", "md5$1$a$b"], "md5"),
        (&["needs-update", "!"], "\"!\""),
        (&["mkae", "pw"], "mkae"),
        (&["--quick", "make", "pw"], "--quick"),
    ] {
        assert_refused(&run("set_password", arguments), named);
    }
}

#[test]
fn set_password_demonstrates_all_three() {
    let answer = json(&run("set_password", &["--quick", "--json"]));
    assert_eq!(answer["correct"], serde_json::json!([true, false]));
    assert_eq!(answer["needs_update"], serde_json::json!([true]));
    let output = run("set_password", &["--quick"]);
    assert_code(&output, 0);
    assert_eq!(text(&output.stdout).matches("$ set_password ").count(), 3);
}

#[test]
fn pipeline_gives_its_results_in_order() {
    let output = run("pipeline", &["--quick"]);
    assert_code(&output, 0);
    let stdout = text(&output.stdout);
    let pages: Vec<_> = stdout.lines().take(5).collect();
    assert!(pages.iter().enumerate().all(|(number, line)| line.starts_with(&format!("page {number}: "))), "{stdout}");
    assert!(stdout.contains("40 pages by 20 greenlets"), "{stdout}");
    // However many work on it, they are the same.
    let alone =
        json(&run("pipeline", &["--json", "--pages", "6", "--workers", "1", "--ahead", "1", "--latency-ms", "1"]));
    let many =
        json(&run("pipeline", &["--json", "--pages", "6", "--workers", "9", "--ahead", "9", "--latency-ms", "1"]));
    assert_eq!(alone["first_digests"], many["first_digests"]);
    assert_eq!(alone["first_digests"].as_array().map(Vec::len), Some(5));
    for (argument, value) in [("--workers", "0"), ("--ahead", "x"), ("--pages", "-1"), ("--latency-ms", "0")] {
        assert_refused(&run("pipeline", &[&format!("{argument}={value}")]), argument);
    }
}

#[test]
fn a_wrong_password_is_told_by_the_code_also_if_nobody_reads_the_answer() {
    let made = run("set_password", &["make", "--iterations", "1", "right"]);
    assert_code(&made, 0);
    let encoded = text(&made.stdout).trim().to_owned();
    let mut child = example("set_password")
        .args(["verify", &encoded, "wrong"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the example starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("the example ends").code(), Some(1));
}

#[test]
fn a_setting_in_the_environment_that_cannot_be_read_is_named() {
    for name in ["stall", "set_password", "pipeline", "offload_cost"] {
        for (variable, value) in [("GREENROOM_THREADS", "many"), ("GREENROOM_STACK_KIB", "1")] {
            let output = example(name).arg("--quick").env(variable, value).output().expect("the example starts");
            assert_refused(&output, variable);
        }
    }
}

/// The text output of every example, and the code when the disk is full: `hello` doesn't mind.
const TEXT_OUTPUT: [(&str, &[&str], i32); 6] = [
    ("hello", &[], 0),
    ("set_password", &["--quick"], 2),
    ("pipeline", &["--quick"], 2),
    ("stall", &["--quick", "--rounds", "1", "--iterations", "10000"], 2),
    ("stall", &["--compare", "--quick", "--rounds", "1", "--interval-ms", "1", "--iterations", "1000"], 2),
    ("offload_cost", &["--quick", "--rounds", "1"], 2),
];

#[test]
fn text_that_nobody_reads_is_no_failure() {
    for (name, arguments, _) in TEXT_OUTPUT {
        let mut command = example(name);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the example ends");
        assert_code(&output, 0);
        assert_eq!(text(&output.stderr), "", "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_in_one_line() {
    for (name, arguments, code) in TEXT_OUTPUT {
        let full = fs::File::create("/dev/full").expect("Linux has one");
        let output = example(name).args(arguments).stdout(full).output().expect("the example starts");
        if code == 0 {
            assert_code(&output, 0);
        } else {
            assert_refused(&output, "No space left");
        }
    }
}
