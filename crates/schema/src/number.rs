//! Numbers and equality as JSON Schema sees them: `1` and `1.0` are the same.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Number, Value};

/// Whether the number has no fraction.
pub(super) fn is_integer(number: &Number) -> bool {
    integer(number).is_some() || float(number).fract() == 0.0
}

/// As a float. A number beyond the range of floats becomes infinite.
fn float(number: &Number) -> f64 {
    let endless = || match number.to_string().starts_with('-') {
        true => f64::NEG_INFINITY,
        false => f64::INFINITY,
    };
    number.as_f64().unwrap_or_else(endless)
}

fn integer(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

/// Compares exactly: neither number is rounded to the type of the other.
pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => compare_mixed(one, float(other)),
        (None, Some(other)) => compare_mixed(other, float(one)).reverse(),
        (None, None) => compare_floats(float(one), float(other)),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The cast saturates, but only beyond all integers that JSON has here.
    let whole = float.trunc() as i128;
    let fraction = compare_floats(0.0, float.fract());
    integer.cmp(&whole).then(fraction)
}

/// JSON has no NaN, so two floats always compare.
fn compare_floats(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

/// Whether `number` is a multiple of `step` in decimal, as people write numbers: 0.3 is three times
/// 0.1.
pub(super) fn is_multiple(number: &Number, step: &Number) -> bool {
    let (number, step) = (Decimal::of(number), Decimal::of(step));
    let more = number.exponent - step.exponent;
    if step.digits == 0 || number.digits == 0 {
        return number.digits == 0;
    }
    match u32::try_from(more) {
        Ok(more) => {
            let rest = number.digits % step.digits;
            (rest * power_of_ten(more, step.digits)).is_multiple_of(step.digits)
        }
        Err(_) => {
            let scale = 10_u128.checked_pow(more.unsigned_abs());
            let step = scale.and_then(|scale| scale.checked_mul(step.digits));
            step.is_some_and(|step| number.digits.is_multiple_of(step))
        }
    }
}

/// `digits` times ten to the power of `exponent`; `digits` is less than 2⁶⁴.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn of(number: &Number) -> Self {
        if let Some(integer) = integer(number) {
            return Self {
                digits: integer.unsigned_abs(),
                exponent: 0,
            };
        }
        let text = format!("{:e}", float(number).abs());
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = digits.split_once('.').map_or(0, |(_, after)| after.len());
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().unwrap_or_default();
        Self {
            digits: digits.parse().unwrap_or_default(),
            exponent: exponent - i32::try_from(fraction).unwrap_or_default(),
        }
    }
}

/// The modulus is less than 2⁶⁴, so the products do not overflow.
fn power_of_ten(mut exponent: u32, modulus: u128) -> u128 {
    let (mut power, mut square) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % modulus;
        }
        square = square * square % modulus;
        exponent /= 2;
    }
    power
}

/// Whether two values are equal as JSON Schema defines it.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

/// A hash that is the same for equal values.
pub(super) fn hashed(value: &Value, keys: &RandomState) -> u64 {
    match value {
        Value::Number(number) => match integer(number) {
            Some(integer) => keys.hash_one(integer),
            None => {
                let float = float(number);
                match float.fract() == 0.0 && float.abs() < 1e38 {
                    true => keys.hash_one(float as i128),
                    false => keys.hash_one(float.to_bits()),
                }
            }
        },
        Value::Array(values) => {
            let mut hasher = keys.build_hasher();
            for value in values {
                hashed(value, keys).hash(&mut hasher);
            }
            hasher.finish()
        }
        Value::Object(members) => members.iter().fold(7, |sum, (name, value)| {
            sum.wrapping_add(keys.hash_one((name, hashed(value, keys))))
        }),
        Value::Null => 0,
        Value::Bool(yes) => keys.hash_one(yes),
        Value::String(text) => keys.hash_one(text),
    }
}

/// The size of a value: its parts and its text, which is the cost of comparing it.
pub(super) fn weight(value: &Value) -> u64 {
    match value {
        Value::Array(values) => values.iter().map(weight).sum::<u64>() + 1,
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() as u64 / 64 + weight(value))
            .sum::<u64>()
            .saturating_add(1),
        Value::String(text) => text.len() as u64 / 64 + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        text.parse().expect("a number")
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (one, other, expected) in [
            ("1", "1.0", Ordering::Equal),
            ("0", "-0.0", Ordering::Equal),
            ("-0.0", "0.0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            (
                "18446744073709551615",
                "1.8446744073709552e19",
                Ordering::Less,
            ),
            ("-9223372036854775808", "-1e300", Ordering::Greater),
            ("1", "1.5", Ordering::Less),
            ("-1", "-1.5", Ordering::Greater),
            ("0.5", "0.25", Ordering::Greater),
            ("1e300", "7", Ordering::Greater),
        ] {
            assert_eq!(
                compare(&number(one), &number(other)),
                expected,
                "{one} {other}"
            );
            assert_eq!(
                compare(&number(other), &number(one)),
                expected.reverse(),
                "{other} {one}"
            );
        }
    }

    #[test]
    fn multiples_are_what_people_expect() {
        for (one, step, expected) in [
            ("6", "2", true),
            ("7", "2", false),
            ("0", "0.1", true),
            ("0.3", "0.1", true),
            ("4.5", "1.5", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("1e308", "0.5", true),
            ("1e308", "0.123456789", false),
            ("12391239123", "1e-8", true),
            ("1e-300", "1e300", false),
            ("-4", "2", true),
            ("1e308", "1.2345678901234567e-300", false),
            ("18446744073709551615", "5", true),
        ] {
            assert_eq!(
                is_multiple(&number(one), &number(step)),
                expected,
                "{one} {step}"
            );
        }
    }

    #[test]
    fn what_is_the_same_has_the_same_hash() {
        let keys = RandomState::new();
        for (one, other) in [
            ("1", "1.0"),
            ("0", "-0.0"),
            ("1e20", "100000000000000000000"),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
        ] {
            let [one, other]: [Value; 2] =
                [one, other].map(|text| serde_json::from_str(text).expect("JSON"));
            assert!(same(&one, &other), "{one} {other}");
            assert_eq!(hashed(&one, &keys), hashed(&other, &keys), "{one} {other}");
        }
    }
}
