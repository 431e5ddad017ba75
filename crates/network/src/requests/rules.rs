//! Rules that say which requests are kept as samples.

use profiler_model::{SampleReason, SampleRule, StatusClass};
use profiler_protocols::{Exchange, Status};
use regex::{Regex, RegexBuilder};

/// Rules of one task.
pub const MAX_RULES: usize = 16;
/// Bytes of one expression.
pub const MAX_EXPRESSION_BYTES: usize = 512;
/// Memory of one compiled expression.
const EXPRESSION_ROOM: usize = 256 << 10;

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("there may be at most {MAX_RULES} rules, got {0}")]
    TooMany(usize),
    #[error("rule {0} holds for every request: give it at least one condition")]
    Empty(usize),
    #[error(
        "the expression of rule {number} may have at most {MAX_EXPRESSION_BYTES} bytes, got {bytes}"
    )]
    TooLong { number: usize, bytes: usize },
    #[error("the expression of rule {number} cannot be used: {reason}")]
    Expression { number: usize, reason: String },
}

/// Rules, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(Option<Regex>, SampleRule)>,
}

impl Rules {
    pub fn compile(rules: &[SampleRule]) -> Result<Self, RuleError> {
        if rules.len() > MAX_RULES {
            return Err(RuleError::TooMany(rules.len()));
        }
        let compiled = rules
            .iter()
            .enumerate()
            .map(|(number, rule)| Ok((expression(number, rule)?, rule.clone())));
        Ok(Self {
            rules: compiled.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The first rule that holds.
    pub fn first_of(&self, exchange: &Exchange) -> Option<SampleReason> {
        let found = self
            .rules
            .iter()
            .position(|(expression, rule)| holds(expression.as_ref(), rule, exchange))?;
        u8::try_from(found).ok().map(SampleReason::Rule)
    }
}

fn expression(number: usize, rule: &SampleRule) -> Result<Option<Regex>, RuleError> {
    let SampleRule {
        operation,
        min_duration_ns,
        min_bytes,
        statuses,
        grpc_statuses,
    } = rule;
    let Some(text) = operation else {
        let is_empty = *min_duration_ns == 0
            && *min_bytes == 0
            && statuses.is_empty()
            && grpc_statuses.is_empty();
        return if is_empty {
            Err(RuleError::Empty(number))
        } else {
            Ok(None)
        };
    };
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(RuleError::TooLong {
            number,
            bytes: text.len(),
        });
    }
    RegexBuilder::new(text)
        .size_limit(EXPRESSION_ROOM)
        .build()
        .map(Some)
        .map_err(|error| RuleError::Expression {
            number,
            reason: error.to_string().replace('\n', " "),
        })
}

/// Whether every condition of the rule holds. One about what is not known of the request does not.
fn holds(expression: Option<&Regex>, rule: &SampleRule, exchange: &Exchange) -> bool {
    let SampleRule {
        operation: _,
        min_duration_ns,
        min_bytes,
        statuses,
        grpc_statuses,
    } = rule;
    let bytes = exchange
        .request_bytes
        .saturating_add(exchange.response_bytes);
    exchange.duration_ns() >= *min_duration_ns
        && bytes >= *min_bytes
        && has_status(statuses, grpc_statuses, exchange.status.as_ref())
        && expression.is_none_or(|expression| is_named(expression, exchange))
}

/// The classes of HTTP and the numbers of gRPC are alternatives.
fn has_status(statuses: &[StatusClass], grpc: &[u32], status: Option<&Status>) -> bool {
    if statuses.is_empty() && grpc.is_empty() {
        return true;
    }
    match status {
        Some(Status::Http(code)) => statuses.iter().any(|class| match class {
            StatusClass::ClientError => (400..500).contains(code),
            StatusClass::ServerError => (500..600).contains(code),
        }),
        Some(Status::Grpc(number)) => grpc.contains(number),
        Some(Status::Code(_) | Status::Fine) | None => false,
    }
}

/// Whether the expression is in the operation, `METHOD ROUTE`, or in the path, where that is kept.
fn is_named(expression: &Regex, exchange: &Exchange) -> bool {
    let operation = [&exchange.method, &exchange.route]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    expression.is_match(&operation)
        || exchange
            .path
            .as_deref()
            .is_some_and(|path| expression.is_match(path))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
