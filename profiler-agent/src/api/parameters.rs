//! Parameters of queries. Each is declared once, as a field: how it is called, what it holds, what its text must be, and
//! what the OpenAPI document says of it.

use axum::{extract::FromRequestParts, http::request::Parts};
use profiler_analysis::render::{Format, Value, diff::Norm};
use profiler_model::{IdleMode, ThreadState, WaitReason, diagnosis::DiagnosisScope};

use super::error::ApiError;

/// Declares parameters: `name: Type = "what it must be"`, which completes "is not ..." and "give ...". The type is
/// `Option<T>` for one that may be given, `T` for one that must be, and `Option<Vec<T>>` for one that may be repeated.
macro_rules! parameters {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident {
            $( $(#[$field_about:meta])* $field:ident: $kind:ty = $what:expr ),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        $visibility struct $name {
            $( $(#[$field_about])* $visibility $field: $kind, )*
        }

        impl $crate::api::parameters::Parameters for $name {
            fn names() -> Vec<&'static str> {
                vec![$( stringify!($field) ),*]
            }

            fn read(query: &$crate::api::parameters::Pairs) -> Result<Self, $crate::api::error::ApiError> {
                Ok(Self {
                    $( $field: $crate::api::parameters::Parameter::read(query, stringify!($field), &|| {
                        ($what).to_string()
                    })?, )*
                })
            }
        }
    };
}

pub(super) use parameters;

/// A set of parameters.
pub(super) trait Parameters: Sized {
    fn names() -> Vec<&'static str>;

    /// The first that is wrong is the error.
    fn read(query: &Pairs) -> Result<Self, ApiError>;
}

impl Parameters for () {
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    fn read(_query: &Pairs) -> Result<Self, ApiError> {
        Ok(())
    }
}

impl<A: Parameters, B: Parameters> Parameters for (A, B) {
    fn names() -> Vec<&'static str> {
        [A::names(), B::names()].concat()
    }

    fn read(query: &Pairs) -> Result<Self, ApiError> {
        Ok((A::read(query)?, B::read(query)?))
    }
}

impl<A: Parameters, B: Parameters, C: Parameters> Parameters for (A, B, C) {
    fn names() -> Vec<&'static str> {
        [A::names(), B::names(), C::names()].concat()
    }

    fn read(query: &Pairs) -> Result<Self, ApiError> {
        Ok((A::read(query)?, B::read(query)?, C::read(query)?))
    }
}

/// The parameters of a request. Refuses what is unknown, wrong, missing or given too often, by name.
#[derive(Debug)]
pub(super) struct Given<T>(pub(super) T);

impl<T: Parameters, S: Send + Sync> FromRequestParts<S> for Given<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Self::of(parts.uri.query().unwrap_or(""))
    }
}

impl<T: Parameters> Given<T> {
    pub(super) fn of(query: &str) -> Result<Self, ApiError> {
        let query = Pairs(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        );
        let known = T::names();
        let unknown = query
            .0
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()));
        match unknown {
            None => T::read(&query).map(Self),
            Some((name, _)) => Err(ApiError::InvalidField {
                field: name.clone(),
                detail: format!("unknown query parameter {name:?}"),
                hint: Some(match known.as_slice() {
                    [] => "this address takes no query parameters".into(),
                    known => format!("known parameters are {}", known.join(", ")),
                }),
            }),
        }
    }
}

/// Names and values of a query, in their order.
#[derive(Debug)]
pub(super) struct Pairs(Vec<(String, String)>);

impl Pairs {
    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A text that stands for a value.
pub(super) trait FromText: Sized {
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! from_text {
    ($($kind:ty),*) => {
        $( impl FromText for $kind {
            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        } )*
    };
}

from_text!(u32, u64, usize, bool, String, DiagnosisScope);

/// For enums that have names.
macro_rules! from_name {
    ($($kind:ty),*) => {
        $( impl FromText for $kind {
            fn from_text(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == text)
            }
        } )*
    };
}

from_name!(Format, Value, Norm, IdleMode, ThreadState, WaitReason);

/// For what a parameter with names must be.
pub(super) fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("one of {}", names.join(", "))
}

/// How often a parameter may be given.
pub(super) trait Parameter: Sized {
    fn read(query: &Pairs, name: &str, what: &dyn Fn() -> String) -> Result<Self, ApiError>;
}

impl<T: FromText> Parameter for Option<T> {
    fn read(query: &Pairs, name: &str, what: &dyn Fn() -> String) -> Result<Self, ApiError> {
        let mut values = query.all(name);
        let first = values.next();
        match values.next() {
            None => first.map(|text| parsed(name, text, what)).transpose(),
            Some(_) => Err(ApiError::invalid_field(
                name,
                format!("{name} is given more than once"),
            )),
        }
    }
}

impl<T: FromText> Parameter for T {
    fn read(query: &Pairs, name: &str, what: &dyn Fn() -> String) -> Result<Self, ApiError> {
        Option::read(query, name, what)?.ok_or_else(|| {
            ApiError::invalid_field(name, format!("{name} is missing: give {}", what()))
        })
    }
}

impl<T: FromText> Parameter for Option<Vec<T>> {
    fn read(query: &Pairs, name: &str, what: &dyn Fn() -> String) -> Result<Self, ApiError> {
        let values: Vec<T> = query
            .all(name)
            .map(|text| parsed(name, text, what))
            .collect::<Result<_, _>>()?;
        Ok((!values.is_empty()).then_some(values))
    }
}

fn parsed<T: FromText>(name: &str, text: &str, what: &dyn Fn() -> String) -> Result<T, ApiError> {
    T::from_text(text)
        .ok_or_else(|| ApiError::invalid_field(name, format!("{name} {text:?} is not {}", what())))
}
