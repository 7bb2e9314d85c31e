//! The first page: spawn, join, sleep, kill, timeout.
//!
//! ```console
//! cargo run --example hello
//! ```

use std::io::{Write, stdout};
use std::time::Duration;

use greenroom::{sleep, spawn, timeout};

/// As `println!`, but a reader that has gone away, as `head` does, is no reason to panic: least of all in a destructor.
macro_rules! say {
    ($($text:tt)*) => {
        _ = writeln!(stdout(), $($text)*)
    };
}

/// Says goodbye when it is dropped, however its owner ends.
struct Goodbye;

impl Drop for Goodbye {
    fn drop(&mut self) {
        say!("clock:  killed, and its destructors ran");
    }
}

fn main() {
    let tick = Duration::from_millis(10);

    // A greenlet is a function that takes turns with others on this thread. It starts when `main` first waits.
    let clock = spawn(move || {
        let _goodbye = Goodbye;
        loop {
            say!("clock:  tick");
            sleep(tick);
        }
    });

    // Sleeping, like all waiting, stops only the greenlet that does it: the clock goes on.
    let adder = spawn(move || {
        sleep(tick * 3);
        say!("adder:  done");
        1 + 2
    });

    // `join` waits for the end and hands out the value. An error would say: it panicked, or was killed.
    let sum = adder.join().expect("adding two numbers does not panic");
    say!("main:   the sum is {sum}");

    // Whatever waits can be given a limit from outside, without its help.
    let late = timeout(tick * 2, || sleep(Duration::from_secs(3600)));
    say!("main:   an hour in 20 ms? {}", late.unwrap_err());

    // A greenlet with no end of its own is killed. `kill` returns when it is gone.
    clock.kill();
}
