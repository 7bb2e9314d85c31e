//! Django's password strings, made and checked many at once while nobody waits.
//!
//! ```console
//! cargo run --release --example set_password -- --quick
//! cargo run --release --example set_password -- make < passwords.txt
//! cargo run --release --example set_password -- verify 'pbkdf2_sha256$…' < passwords.txt
//! cargo run --release --example set_password -- needs-update < encoded.txt
//! ```
//!
//! Every password gets a greenlet, and each greenlet hands its hash to the pool. All the while, a
//! ticker on the same thread wants to run every 5 ms; the longest it had to wait is printed at the
//! end, on standard error.

#![allow(clippy::print_stderr)]

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, value_parser};
use greenroom::stall::TickGaps;
use greenroom::{join_all, offload, spawn};

#[path = "set_password/answer.rs"]
mod answer;
mod command_line;
mod django;

use answer::{Answer, Beside};

/// How often the ticker wants to run.
const INTERVAL: Duration = Duration::from_millis(5);

const AFTER_HELP: &str = "\
Without a value, or in place of `-`, values are read from standard input, one per line. That is the
way for passwords that matter: arguments can be seen in the list of processes. Put -- before a
password that starts with a dash. Without a command: make.

Exit codes: 0, 1 when a password is wrong, 2 for a bad value.";

/// Makes and checks Django's pbkdf2_sha256 password strings, many at once, while nobody waits
#[derive(Parser)]
#[command(name = "set_password", after_help = AFTER_HELP)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Make, verify and check a few passwords with few iterations, to see it work
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Make a password string from each password
    Make {
        /// `-`: from standard input
        #[arg(value_name = "PASSWORD")]
        passwords: Vec<String>,
        /// Rounds of hashing: what each guess costs an attacker, and each login costs you
        #[arg(long, value_name = "N", default_value_t = django::ITERATIONS)]
        #[arg(value_parser = value_parser!(u32).range(1..))]
        iterations: u32,
        /// Use this salt instead of a fresh one for each
        #[arg(long, value_parser = parse_salt)]
        salt: Option<String>,
    },
    /// Tell whether each password is the one the string was made from
    Verify {
        /// A password string, as it stands in the database
        encoded: String,
        /// `-`: from standard input
        #[arg(value_name = "PASSWORD")]
        passwords: Vec<String>,
    },
    /// Tell whether each string should be made anew when its user logs in
    NeedsUpdate {
        /// `-`: from standard input
        #[arg(value_name = "ENCODED")]
        encoded: Vec<String>,
        /// Rounds of hashing that a string should have
        #[arg(long, value_name = "N", default_value_t = django::ITERATIONS)]
        #[arg(value_parser = value_parser!(u32).range(1..))]
        iterations: u32,
    },
}

impl Command {
    /// What runs without a command: make, from standard input.
    const MAKE: Command = Command::Make { passwords: Vec::new(), iterations: django::ITERATIONS, salt: None };
}

fn parse_salt(salt: &str) -> Result<String, django::Error> {
    django::check_salt(salt).map(|()| salt.to_owned())
}

fn main() -> ExitCode {
    let command_line = match command_line::parse::<CommandLine>() {
        Ok(command_line) => command_line,
        Err(code) => return code,
    };
    run(command_line).unwrap_or_else(|error| command_line::fail(&*error))
}

fn run(CommandLine { command, quick, json }: CommandLine) -> Result<ExitCode, Box<dyn Error>> {
    if quick {
        if command.is_some() {
            return Err("--quick takes no command: it shows all three".into());
        }
        return demonstrate(json);
    }
    let answer = answer(command.unwrap_or(Command::MAKE))?;
    let code = if answer.is_refusal() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    let printed = if json { answer::print_json(&[answer]) } else { answer::print(&answer) };
    match printed {
        // Nobody reads it, but the code still tells.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        printed => Ok(printed.map(|()| code)?),
    }
}

fn answer(command: Command) -> Result<Answer, Box<dyn Error>> {
    Ok(match command {
        Command::Make { passwords, iterations, salt } => make(values(passwords, "passwords")?, iterations, salt)?,
        Command::Verify { encoded, passwords } => verify(encoded, values(passwords, "passwords")?)?,
        Command::NeedsUpdate { encoded, iterations } => {
            needs_update(&values(encoded, "password strings")?, iterations)?
        }
    })
}

fn make(passwords: Vec<String>, iterations: u32, salt: Option<String>) -> Result<Answer, django::Error> {
    let (made, beside) = at_once(passwords, move |password: String| match &salt {
        Some(salt) => django::make_with_salt(&password, salt, iterations),
        None => django::make(&password, iterations),
    });
    Ok(Answer::Made(made.into_iter().collect::<Result<_, _>>()?, beside))
}

fn verify(encoded: String, passwords: Vec<String>) -> Result<Answer, django::Error> {
    let (verified, beside) = at_once(passwords, move |password: String| django::verify(&password, &encoded));
    Ok(Answer::Verified(verified.into_iter().collect::<Result<_, _>>()?, beside))
}

/// Looks at the strings only, which takes less time than handing them to the pool would.
fn needs_update(encoded: &[String], iterations: u32) -> Result<Answer, django::Error> {
    let needs_update = encoded.iter().map(|encoded| django::needs_update(encoded, iterations));
    Ok(Answer::NeedsUpdate(needs_update.collect::<Result<_, _>>()?))
}

/// Makes three strings, with so few iterations that they need an update, and checks the first.
fn demonstrate(json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let passwords = ["lètmein", "correct horse", "swordfish"].map(str::to_owned);
    let made = make(passwords.to_vec(), 1000, None)?;
    let Answer::Made(encoded, _) = &made else { unreachable!("make answers with what it made") };
    let verified = verify(encoded[0].clone(), passwords[..2].to_vec())?;
    let needs_update = needs_update(&encoded[..1], django::ITERATIONS)?;
    if json {
        answer::print_json(&[made, verified, needs_update])?;
        return Ok(ExitCode::SUCCESS);
    }
    let steps = [
        ("make --iterations 1000 lètmein 'correct horse' swordfish".to_owned(), &made),
        (format!("verify '{}' lètmein 'correct horse'", encoded[0]), &verified),
        (format!("needs-update '{}'", encoded[0]), &needs_update),
    ];
    for (command, answer) in steps {
        writeln!(io::stdout(), "$ set_password {command}")?;
        answer::print(answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `work` on all items at once, each in a greenlet that hands it to the pool.
fn at_once<T, R>(items: Vec<T>, work: impl Fn(T) -> R + Clone + Send + 'static) -> (Vec<R>, Beside)
where
    T: Send + 'static,
    R: Send + 'static,
{
    let jobs = items.len();
    let mut results = Vec::with_capacity(jobs);
    let gaps = TickGaps::measure(INTERVAL, || {
        let hand_over = |item| {
            let work = work.clone();
            spawn(move || offload(work, (item,)))
        };
        let greenlets: Vec<_> = items.into_iter().map(hand_over).collect();
        for result in join_all(greenlets) {
            results.push(result.expect("hashing does not panic"));
        }
    });
    (results, Beside { jobs, took: gaps.work, longest_gap: gaps.max })
}

/// The values given, with the lines of standard input in place of `-` or of none at all.
fn values(mut given: Vec<String>, what: &str) -> io::Result<Vec<String>> {
    if given.is_empty() {
        given.push("-".to_owned());
    }
    let mut values = Vec::with_capacity(given.len());
    for value in given {
        if value == "-" {
            values.extend(standard_input(what)?.lines().map(str::to_owned));
        } else {
            values.push(value);
        }
    }
    if values.is_empty() {
        return Err(io::Error::other(format!("standard input holds no {what}")));
    }
    Ok(values)
}

/// Blocks the thread, which nobody minds: no greenlet runs yet.
fn standard_input(what: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        _ = writeln!(io::stderr(), "Type {what}, one per line; they show as you type. Ctrl-D ends.");
    }
    io::read_to_string(io::stdin()).map_err(|error| io::Error::new(error.kind(), format!("standard input: {error}")))
}
