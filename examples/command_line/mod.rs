//! Command lines of the examples: clap, with every complaint cut to one line.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

/// The exit code for a value that can't be used.
const BAD_VALUE: u8 = 2;

/// Reads the command line, or says in one line what is wrong with it.
///
/// `Err` is the code to exit with: 0 after `--help`, 2 after a complaint.
pub(crate) fn parse<T: Parser>() -> Result<T, ExitCode> {
    let parsed = T::try_parse();
    if parsed.is_ok() {
        hub_or_complaint()?;
    }
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Help that nobody reads to its end is no failure.
            _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            complain(&one_line(&error));
            ExitCode::from(BAD_VALUE)
        }
    })
}

/// Makes the hub, whose settings may come from the environment, which may be wrong.
fn hub_or_complaint() -> Result<(), ExitCode> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let made = std::panic::catch_unwind(|| drop(greenroom::hub()));
    std::panic::set_hook(hook);
    made.map_err(|panic| {
        let why = panic.downcast_ref::<String>().map_or("the hub can't be made", String::as_str);
        complain(&format!("error: {why}"));
        ExitCode::from(BAD_VALUE)
    })
}

/// Reports an error that names the value it is about, in the form of the command line's own.
pub(crate) fn fail(error: &(dyn Error + 'static)) -> ExitCode {
    let io_error = error.downcast_ref::<io::Error>();
    if io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        // Whoever reads the output has seen enough, as `head` does.
        return ExitCode::SUCCESS;
    }
    complain(&format!("error: {error}"));
    ExitCode::from(BAD_VALUE)
}

/// A complaint that nobody can read is no reason to end otherwise.
fn complain(line: &str) {
    _ = writeln!(io::stderr(), "{line}");
}

/// clap's message up to the first empty line (usage follows it), its lines joined; and what to do, where that isn't said yet.
fn one_line(error: &clap::Error) -> String {
    let message = error.to_string();
    let lines = message.lines().take_while(|line| !line.is_empty());
    let mut line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let known = error.get(ContextKind::SuggestedArg);
    match error.kind() {
        ErrorKind::InvalidSubcommand => line.push_str("; --help lists the commands"),
        ErrorKind::UnknownArgument if known.is_none() => {
            line.push_str("; --help lists the options, and -- goes before a value that begins with a dash");
        }
        ErrorKind::ValueValidation if line.contains("invalid digit") => line.push_str(": a whole number is wanted"),
        _ => {}
    }
    line
}
