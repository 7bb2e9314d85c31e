//! The work: one PBKDF2-HMAC-SHA256 hash, never believed before its key is checked.

use std::error::Error;
use std::fmt;
use std::time::Instant;

use sha2::Sha256;

/// In one hash of Django 4.2.
pub(crate) const ITERATIONS: u32 = 600_000;

type Key = [u8; 32];

/// What CPython derives from "pw" and "salt" in `ITERATIONS`.
const KNOWN: &str = "c86b4470512980eda8569b4e5fa554530b297570b45ff140f6bc5a340485188b";

/// What it derives from "password" and "salt" in 4,096: soon checked, before a hash of any length.
const KNOWN_4096: &str = "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a";

/// The hash of "pw" with "salt", whose right key is known.
#[derive(Clone, Copy)]
pub(crate) struct Hash {
    iterations: u32,
    key: Key,
}

/// When a hash began and ended.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl Hash {
    /// Checks the implementation against the known answers first.
    pub(crate) fn checked(iterations: u32) -> Result<Hash, WrongKey> {
        expect(4096, derive("password", 4096), KNOWN_4096)?;
        let key = derive("pw", iterations);
        if iterations == ITERATIONS {
            expect(iterations, key, KNOWN)?;
        }
        Ok(Hash { iterations, key })
    }

    /// Hashes, which keeps a core busy all the while, and checks the key.
    pub(crate) fn run(self) -> Result<Run, WrongKey> {
        let start = Instant::now();
        let key = derive("pw", self.iterations);
        let end = Instant::now();
        expect(self.iterations, key, &hex(self.key))?;
        Ok(Run { start, end })
    }

    pub(crate) fn iterations(self) -> u32 {
        self.iterations
    }
}

fn derive(password: &str, iterations: u32) -> Key {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), b"salt", iterations)
}

fn expect(iterations: u32, key: Key, expected: &str) -> Result<(), WrongKey> {
    let key = hex(key);
    if key == expected {
        return Ok(());
    }
    Err(WrongKey { iterations, key, expected: expected.to_owned() })
}

fn hex(key: Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash gave a wrong key, so that no time it took means anything.
#[derive(Debug)]
pub(crate) struct WrongKey {
    iterations: u32,
    key: String,
    expected: String,
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongKey { iterations, key, expected } = self;
        write!(f, "PBKDF2 in {iterations} iterations gave the key {key} instead of {expected}")
    }
}

impl Error for WrongKey {}
