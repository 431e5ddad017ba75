//! Hides what command lines may carry: passwords, keys, tokens.

use crate::config::ArgumentPolicy;

/// What a hidden argument is shown as.
pub const MASK: &str = "***";

/// The arguments as they may leave the agent: the program's name, and a mask for each argument.
///
/// A process may rewrite its title so that everything stands in the first argument
/// (`postgres: user secret`); of that only the first word is kept.
pub fn masked(arguments: &[String], policy: ArgumentPolicy) -> Vec<String> {
    match policy {
        ArgumentPolicy::Shown => arguments.to_vec(),
        ArgumentPolicy::Masked => {
            let Some((program, rest)) = arguments.split_first() else {
                return Vec::new();
            };
            let name = match program.split_once(char::is_whitespace) {
                Some((word, _)) => format!("{word} {MASK}"),
                None => program.clone(),
            };
            std::iter::once(name)
                .chain(rest.iter().map(|_| MASK.to_owned()))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], expected: &[&str]) {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).into()).collect();
        assert_eq!(masked(&arguments, ArgumentPolicy::Masked), expected);
        assert_eq!(masked(&arguments, ArgumentPolicy::Shown), arguments);
    }

    #[test]
    fn only_the_program_is_kept() {
        check(&[], &[]);
        check(&["envoy"], &["envoy"]);
        check(
            &["/bin/mysql", "-psecret", ""],
            &["/bin/mysql", "***", "***"],
        );
    }

    #[test]
    fn a_rewritten_title_is_cut_after_its_first_word() {
        check(&["postgres: bob 10.0.0.1 secret"], &["postgres: ***"]);
        check(&["sshd:\troot@pts/0"], &["sshd: ***"]);
    }
}
