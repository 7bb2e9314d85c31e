//! Known answers: PBKDF2-HMAC-SHA256 as CPython and RFC 7914 give it, and Django's password strings.

use django::{Decoded, Error};
use sha2::Sha256;

#[path = "../examples/django/mod.rs"]
mod django;

#[track_caller]
fn assert_key(password: &[u8], salt: &[u8], iterations: u32, expected: &str) {
    let mut key = vec![0; expected.len() / 2];
    pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut key);
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
}

#[test]
fn pbkdf2_few_iterations() {
    assert_key(
        b"passwd",
        b"salt",
        1,
        "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc\
         49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783",
    );
    let one = "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b";
    assert_key(b"password", b"salt", 1, one);
    let two = "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43";
    assert_key(b"password", b"salt", 2, two);
    let many = "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a";
    assert_key(b"password", b"salt", 4096, many);
}

#[test]
fn pbkdf2_nul_bytes_are_bytes_like_others() {
    assert_key(b"pass\0word", b"sa\0lt", 4096, "89b69d0516f829893c696226650a8687");
}

/// HMAC hashes a key that is longer than its block of 64 bytes, and pads any other.
#[test]
fn pbkdf2_password_around_the_block_size() {
    let block = "d1d306c1a14915a576daa5c6cb95bc51748710f21b0c123d03be171714af38d8";
    assert_key(&[b'p'; 64], b"salt", 1, block);
    let longer = "0a2ed9649b9f14077ac4f02f664e6bea44c2ebba8d8aae7f8e80a455710fab44";
    assert_key(&[b'p'; 65], b"salt", 1, longer);
    let empty = "f135c27993baf98773c5cdb40a5706ce6a345cde61b000a67858650cd6a324d7";
    assert_key(b"", b"salt", 1, empty);
}

#[test]
fn pbkdf2_80_000_iterations() {
    assert_key(
        b"Password",
        b"NaCl",
        80_000,
        "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56\
         a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d",
    );
}

#[test]
fn pbkdf2_600_000_iterations() {
    let key = "c86b4470512980eda8569b4e5fa554530b297570b45ff140f6bc5a340485188b";
    assert_key(b"pw", b"salt", 600_000, key);
}

/// Made, and verified with the right password and a wrong one.
#[track_caller]
fn assert_encoded(password: &str, iterations: u32, hash: &str) {
    let encoded = format!("pbkdf2_sha256${iterations}$seasalt${hash}");
    assert_eq!(django::make_with_salt(password, "seasalt", iterations), Ok(encoded.clone()));
    assert_eq!(django::verify(password, &encoded), Ok(true));
    if iterations <= 10_000 {
        assert_eq!(django::verify(&format!("{password}t"), &encoded), Ok(false));
    }
}

#[test]
fn django_few_iterations() {
    assert_encoded("lètmein", 1, "mJQ8D8xVBAKQGCo0t0n+NSPS2a0gQhVtjuC9LdL9WiM=");
    assert_encoded("lètmein", 2, "zRLXp2ZyOeJcPulOeUFTil/jv8Mq7+nA0CuH0O1J+iA=");
    assert_encoded("lètmein", 1000, "JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=");
    assert_encoded("lètmein", 10_000, "CWWFdHOWwPnki7HvkcqN9iA2T3KLW1cf2uZ5kvArtVY=");
}

#[test]
fn django_260_000_iterations() {
    assert_encoded("lètmein", 260_000, "YlZ2Vggtqdc61YjArZuoApoBh9JNGYoDRBUGu6tcJQo=");
}

#[test]
fn django_600_000_iterations() {
    assert_encoded("lètmein", 600_000, "OAXyhAQ/4ZDA9V5RMExt3C1OwQdUpLZ99vm1McFlLRA=");
}

#[test]
fn django_empty_password() {
    assert_encoded("", 1000, "XHfRVmyEZRTCcSbqGP00JKv0fRwYHK0ogjPZdSJxCXk=");
}

#[test]
fn salt_must_not_be_empty_or_contain_the_separator() {
    assert_eq!(django::make_with_salt("pw", "", 1), Err(Error::EmptySalt));
    let error = Error::SeparatorInSalt("sea$alt".into());
    assert_eq!(django::make_with_salt("pw", "sea$alt", 1), Err(error.clone()));
    assert!(error.to_string().contains("\"sea$alt\""), "{error}");
}

#[test]
fn at_least_one_iteration() {
    assert_eq!(django::make_with_salt("pw", "seasalt", 0), Err(Error::NoIterations));
    assert_eq!(django::make("pw", 0), Err(Error::NoIterations));
}

#[test]
fn generated_salt_is_22_letters_and_digits_and_never_the_same() {
    let salts: Vec<_> = (0..200).map(|_| django::generate_salt().unwrap()).collect();
    for salt in &salts {
        assert_eq!(salt.len(), 22, "{salt:?}");
        assert!(salt.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{salt:?}");
    }
    let different: std::collections::HashSet<_> = salts.iter().collect();
    assert_eq!(different.len(), salts.len());
    // 4,400 characters: that one of the 62 is missing happens once in 10^29 runs.
    let characters: std::collections::HashSet<_> = salts.concat().chars().collect();
    assert_eq!(characters.len(), 62);
}

#[test]
fn made_with_a_generated_salt() {
    let encoded = django::make("correct horse", 1000).unwrap();
    let Decoded { iterations, salt, hash } = django::decode(&encoded).unwrap();
    assert_eq!((iterations, salt.len(), hash.len()), (1000, 22, 44));
    assert_ne!(django::make("correct horse", 1000).unwrap(), encoded);
    assert_eq!(django::verify("correct horse", &encoded), Ok(true));
    assert_eq!(django::verify("correct horses", &encoded), Ok(false));
}

const ENCODED: &str = "pbkdf2_sha256$1000$seasalt$JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=";

#[test]
fn decode_takes_the_string_apart() {
    let decoded = Decoded { iterations: 1000, salt: "seasalt", hash: "JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=" };
    assert_eq!(django::decode(ENCODED), Ok(decoded));
}

/// The whole string counts, also what changes nothing in the key.
#[test]
fn verify_compares_the_whole_string() {
    let differ = [
        ENCODED.replace("$1000$", "$1001$"),
        ENCODED.replace("$1000$", "$01000$"),
        ENCODED.replace("seasalt", "seasalT"),
        ENCODED.replace("X4A=", "X4B="),
        ENCODED.replace("X4A=", "X4A"),
        ENCODED.replace("JgZr", "jgZr"),
        format!("{ENCODED}="),
        format!("{ENCODED}\n"),
    ];
    for encoded in differ {
        assert_eq!(django::verify("lètmein", &encoded), Ok(false), "{encoded:?}");
    }
}

#[test]
fn marked_as_unusable_never_verifies() {
    for encoded in ["!", "!abc", &format!("!{ENCODED}")] {
        assert_eq!(django::verify("lètmein", encoded), Ok(false), "{encoded:?}");
        assert_eq!(django::decode(encoded), Err(Error::Unusable(encoded.into())));
        assert_eq!(django::needs_update(encoded, 1000), Err(Error::Unusable(encoded.into())));
    }
}

#[test]
fn malformed_strings_are_errors_that_name_what_is_wrong() {
    let parts = |encoded: &str, count| Error::Parts { encoded: encoded.into(), count };
    let iterations = |part: &str| Error::Iterations(part.into());
    let malformed = [
        ("", parts("", 1), "\"\""),
        ("secret", parts("secret", 1), "\"secret\""),
        ("pbkdf2_sha256$1000$salt", parts("pbkdf2_sha256$1000$salt", 3), "3 parts"),
        ("pbkdf2_sha256$1$a$b$c", parts("pbkdf2_sha256$1$a$b$c", 5), "5 parts"),
        ("md5$1000$salt$hash", Error::Algorithm("md5".into()), "\"md5\""),
        ("pbkdf2_sha256$$salt$hash", iterations(""), "\"\""),
        ("pbkdf2_sha256$0$salt$hash", iterations("0"), "\"0\""),
        ("pbkdf2_sha256$-1$salt$hash", iterations("-1"), "\"-1\""),
        ("pbkdf2_sha256$+1$salt$hash", iterations("+1"), "\"+1\""),
        ("pbkdf2_sha256$1e3$salt$hash", iterations("1e3"), "\"1e3\""),
        ("pbkdf2_sha256$ 1$salt$hash", iterations(" 1"), "\" 1\""),
        ("pbkdf2_sha256$٣$salt$hash", iterations("٣"), "\"٣\""),
        ("pbkdf2_sha256$4294967296$salt$hash", iterations("4294967296"), "\"4294967296\""),
        ("pbkdf2_sha256$1000$$hash", Error::EmptySalt, "\"\""),
    ];
    for (encoded, error, named) in malformed {
        assert!(error.to_string().contains(named), "{error} should name {named}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert_eq!(django::verify("pw", encoded), Err(error.clone()), "{encoded:?}");
        assert_eq!(django::needs_update(encoded, 1000), Err(error.clone()), "{encoded:?}");
        assert_eq!(django::decode(encoded), Err(error), "{encoded:?}");
    }
}

#[test]
fn needs_update_when_the_count_differs_or_the_salt_is_short() {
    let encoded = |iterations, salt: &str| django::make_with_salt("pw", salt, iterations).unwrap();
    let long = "aaaaaaaaaaaaaaaaaaaaaa";
    assert_eq!(long.len(), 22);
    for (iterations, salt, needs_update) in [
        (1000, long, false),
        (999, long, true),
        (1001, long, true),
        (1000, &long[1..], true),
        (1000, &format!("{long}a"), false),
        (999, &long[1..], true),
    ] {
        let encoded = encoded(iterations, salt);
        assert_eq!(django::needs_update(&encoded, 1000), Ok(needs_update), "{encoded}");
    }
    assert_eq!(django::needs_update(&django::make("pw", 1000).unwrap(), 1000), Ok(false));
}

#[test]
fn no_message_contains_a_line_break() {
    let error = django::decode("two\nlines").unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
}
