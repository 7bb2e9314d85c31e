//! Command lines of the examples: clap, with every complaint cut to one line.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

/// The exit code for a value that can't be used.
const BAD_VALUE: u8 = 2;

/// Reads the command line, or says in one line what is wrong with it.
///
/// `Err` is the code to exit with: 0 after `--help`, 2 after a complaint.
pub(crate) fn parse<T: Parser>() -> Result<T, ExitCode> {
    T::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Help that nobody reads to its end is no failure.
            _ = error.print();
            ExitCode::SUCCESS
        }
        _ => {
            complain(&one_line(&error.to_string()));
            ExitCode::from(BAD_VALUE)
        }
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

/// clap's message up to the first empty line (usage and tips follow it), its lines joined.
fn one_line(message: &str) -> String {
    let lines = message.lines().take_while(|line| !line.is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}
