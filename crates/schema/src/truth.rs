//! Three-valued results: a value matches, does not match, or it is unknown because a pattern cannot
//! be matched.
//!
//! This is Kleene's logic: a result of yes or no holds whether or not the pattern matches. So no
//! value is refused because of an unknown result, and a value that fails for another reason still
//! fails. If one pattern decides in several places, the result may be unknown although reasoning
//! about all of them together would decide it.

/// A result, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Truth {
    No,
    Unknown,
    Yes,
}

impl Truth {
    /// Whether both are true.
    pub(super) fn and(self, other: Self) -> Self {
        self.min(other)
    }

    /// Whether at least one is true.
    pub(super) fn or(self, other: Self) -> Self {
        self.max(other)
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }

    /// The result if one of the two applies and it is unknown which.
    pub(super) fn either(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(is_so: bool) -> Self {
        match is_so {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// Counts how many results are true.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Count {
    yes: u64,
    unknown: u64,
}

impl Count {
    pub(super) fn add(&mut self, one: Truth) {
        match one {
            Truth::Yes => self.yes += 1,
            Truth::Unknown => self.unknown += 1,
            Truth::No => {}
        }
    }

    /// Whether the count is at least `least` and at most `most`.
    pub(super) fn is_within(self, least: u64, most: u64) -> Truth {
        let (fewest, many) = (self.yes, self.yes + self.unknown);
        match least.max(fewest) <= most.min(many) {
            true if least <= fewest && many <= most => Truth::Yes,
            true => Truth::Unknown,
            false => Truth::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{No, Unknown, Yes};
    use super::*;

    #[test]
    fn tables_of_three_values() {
        // One, other, and, or, either.
        for (one, other, and, or, either) in [
            (Yes, Yes, Yes, Yes, Yes),
            (Yes, Unknown, Unknown, Yes, Unknown),
            (Yes, No, No, Yes, Unknown),
            (Unknown, Unknown, Unknown, Unknown, Unknown),
            (Unknown, No, No, Unknown, Unknown),
            (No, No, No, No, No),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(one.and(other), and, "{one:?} and {other:?}");
                assert_eq!(one.or(other), or, "{one:?} or {other:?}");
                assert_eq!(one.either(other), either, "either {one:?} or {other:?}");
            }
        }
        assert_eq!([Yes, Unknown, No].map(Truth::not), [No, Unknown, Yes]);
    }

    #[test]
    fn what_is_unknown_may_count_or_not() {
        // The results, then whether exactly one is true, two or more, at most one.
        for (all, one, two_or_more, one_at_most) in [
            (&[][..], No, No, Yes),
            (&[No], No, No, Yes),
            (&[Yes], Yes, No, Yes),
            (&[Unknown], Unknown, No, Yes),
            (&[Yes, Yes], No, Yes, No),
            (&[Yes, No], Yes, No, Yes),
            (&[Yes, Unknown], Unknown, Unknown, Unknown),
            (&[Unknown, Unknown], Unknown, Unknown, Unknown),
            (&[Yes, Yes, Unknown], No, Yes, No),
        ] {
            let mut count = Count::default();
            all.iter().for_each(|one| count.add(*one));
            assert_eq!(count.is_within(1, 1), one, "{all:?}");
            assert_eq!(count.is_within(2, u64::MAX), two_or_more, "{all:?}");
            assert_eq!(count.is_within(0, 1), one_at_most, "{all:?}");
            assert_eq!(count.is_within(0, u64::MAX), Yes, "{all:?}");
            assert_eq!(count.is_within(2, 1), No, "{all:?}");
        }
    }
}
