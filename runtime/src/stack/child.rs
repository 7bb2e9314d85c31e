//! Tests that need a process of their own: they crash it, or change what can't be changed back.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Names the test that the process was started for.
const VARIABLE: &str = "GREENROOM_TEST_CHILD";

/// Runs the test called `name`, of the module `module` (its `module_path!()`), again in a process of its own, and
/// returns how that ended. `None` in that process.
pub(super) fn run(module: &str, name: &str) -> Option<Output> {
    let (_crate, module) = module.split_once("::").unwrap();
    let test = format!("{module}::{name}");
    if std::env::var_os(VARIABLE).is_some_and(|child| child == *test) {
        return None;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, &test)
        .output()
        .unwrap();
    Some(output)
}

/// Asserts that it was ended by `signal`, and returns what it wrote to stderr.
pub(super) fn killed_by(output: &Output, signal: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(signal), "{}\n{stderr}", output.status);
    stderr
}

/// Asserts that it ended well.
pub(super) fn succeeded(output: &Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "the child ran no test: {stdout}");
}
