//! Django's password strings: `pbkdf2_sha256$<iterations>$<salt>$<hash>`, where the hash is the base64 of a 32-byte key.
//!
//! Plain functions that know nothing of greenroom. [`make`], [`make_with_salt`] and [`verify`] keep a core busy for tens
//! of milliseconds, so a greenlet hands them to the pool: `greenroom::offload(django::verify, (password, encoded))`.

// Each program that includes this file uses a part of it.
#![allow(dead_code)]

use std::error;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The first part of every string made here.
pub(crate) const ALGORITHM: &str = "pbkdf2_sha256";

/// The iterations that Django 4.2 asks for.
pub(crate) const ITERATIONS: u32 = 600_000;

/// Characters in a generated salt: 22 of 62 kinds hold the 128 bits that Django wants.
pub(crate) const SALT_LENGTH: usize = 22;

/// In front of a string with which nobody can log in.
const UNUSABLE: char = '!';

const SEPARATOR: char = '$';

const SALT_ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The parts of a password string, borrowed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoded<'a> {
    /// At least 1.
    pub(crate) iterations: u32,
    /// Not empty.
    pub(crate) salt: &'a str,
    /// As it stands in the string; whether it is base64 shows only when it is compared.
    pub(crate) hash: &'a str,
}

/// Hashes `password` with a fresh salt.
pub(crate) fn make(password: &str, iterations: u32) -> Result<String, Error> {
    make_with_salt(password, &generate_salt()?, iterations)
}

/// Hashes `password` with the salt given, which must not be empty and must not contain `$`.
pub(crate) fn make_with_salt(password: &str, salt: &str, iterations: u32) -> Result<String, Error> {
    check_salt(salt)?;
    if iterations == 0 {
        return Err(Error::NoIterations);
    }
    let key = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), salt.as_bytes(), iterations);
    Ok([ALGORITHM, &iterations.to_string(), salt, &BASE64.encode(key)].join("$"))
}

/// Whether `password` is the one that `encoded` was made from.
///
/// Makes the string again with the salt and the count stored in it, and compares the two in a time that does not depend
/// on where they differ. A string that starts with `!` belongs to no password.
pub(crate) fn verify(password: &str, encoded: &str) -> Result<bool, Error> {
    if encoded.starts_with(UNUSABLE) {
        return Ok(false);
    }
    let stored = decode(encoded)?;
    let again = make_with_salt(password, stored.salt, stored.iterations)?;
    Ok(again.as_bytes().ct_eq(encoded.as_bytes()).into())
}

/// Takes a password string apart. One that decodes can also be verified.
pub(crate) fn decode(encoded: &str) -> Result<Decoded<'_>, Error> {
    if encoded.starts_with(UNUSABLE) {
        return Err(Error::Unusable(encoded.to_owned()));
    }
    let parts: Vec<&str> = encoded.split(SEPARATOR).collect();
    let &[algorithm, iterations, salt, hash] = parts.as_slice() else {
        return Err(Error::Parts { encoded: encoded.to_owned(), count: parts.len() });
    };
    if algorithm != ALGORITHM {
        return Err(Error::Algorithm(algorithm.to_owned()));
    }
    check_salt(salt)?;
    Ok(Decoded { iterations: decode_iterations(iterations)?, salt, hash })
}

/// Whether a user who logs in with `encoded` should get a new string: its count is not the `iterations` wanted (a higher
/// one counts too), or its salt is shorter than a generated one.
pub(crate) fn needs_update(encoded: &str, iterations: u32) -> Result<bool, Error> {
    let stored = decode(encoded)?;
    Ok(stored.iterations != iterations || stored.salt.chars().count() < SALT_LENGTH)
}

/// 22 letters and digits from the system's secure source, each of the 62 equally likely.
pub(crate) fn generate_salt() -> Result<String, Error> {
    let mut salt = String::with_capacity(SALT_LENGTH);
    while salt.len() < SALT_LENGTH {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(Error::Randomness)?;
        // Six bits count to 64. The two values beyond the alphabet are thrown away; folded back by `% 62` they would
        // make two of the characters twice as likely as the others.
        let characters = bytes.iter().filter_map(|byte| SALT_ALPHABET.get(usize::from(byte & 0b11_1111)));
        salt.extend(characters.take(SALT_LENGTH - salt.len()).copied().map(char::from));
    }
    Ok(salt)
}

/// Whether a salt can stand in a password string.
pub(crate) fn check_salt(salt: &str) -> Result<(), Error> {
    if salt.is_empty() {
        return Err(Error::EmptySalt);
    }
    if salt.contains(SEPARATOR) {
        return Err(Error::SeparatorInSalt(salt.to_owned()));
    }
    Ok(())
}

/// Digits only: `str::parse` alone would take a sign as well.
fn decode_iterations(part: &str) -> Result<u32, Error> {
    let digits = part.bytes().all(|byte| byte.is_ascii_digit());
    match part.parse() {
        Ok(iterations) if digits && iterations > 0 => Ok(iterations),
        _ => Err(Error::Iterations(part.to_owned())),
    }
}

/// What is wrong with a value. None of the messages contains a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// The salt given is empty.
    EmptySalt,
    /// The salt given contains the character that separates the parts.
    SeparatorInSalt(String),
    /// Zero iterations were asked for.
    NoIterations,
    /// The string starts with `!`, so there is nothing to decode.
    Unusable(String),
    /// The string has `count` parts instead of four.
    Parts {
        /// The whole string.
        encoded: String,
        /// How many parts it has.
        count: usize,
    },
    /// The first part is another algorithm.
    Algorithm(String),
    /// The second part is no decimal number from 1 to `u32::MAX`.
    Iterations(String),
    /// The system has no random bytes to give.
    Randomness(getrandom::Error),
}

impl fmt::Display for Error {
    // Values are printed with `{:?}`, so that a line break inside one doesn't break the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::EmptySalt => f.write_str(r#"salt "" is empty: give it at least one character"#),
            Error::SeparatorInSalt(salt) => {
                write!(f, "salt {salt:?} contains '$', which separates the parts of a password string")
            }
            Error::NoIterations => f.write_str("0 iterations: ask for at least 1"),
            Error::Unusable(encoded) => write!(f, "{encoded:?} is marked with '!': it belongs to no password"),
            Error::Parts { encoded, count } => {
                let noun = if *count == 1 { "part" } else { "parts" };
                write!(f, "{encoded:?} has {count} {noun}: a password string is {ALGORITHM}$<iterations>$<salt>$<hash>")
            }
            Error::Algorithm(algorithm) => write!(f, "algorithm {algorithm:?} is not known: only {ALGORITHM} is"),
            Error::Iterations(part) => write!(f, "iterations {part:?} are no decimal number from 1 to {}", u32::MAX),
            Error::Randomness(error) => write!(f, "no random bytes for a salt: {error}"),
        }
    }
}

impl error::Error for Error {}
