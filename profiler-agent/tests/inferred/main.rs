//! What is inferred about real C++ programs, compared with their symbols, which the inference
//! does not see. Run by `cargo xtask test inferred`, which installs what it needs: g++, binutils,
//! Debian's C++ libraries (unpacked, not installed) and Envoy. Rules of diagnoses are proved by the same names.

#[cfg(test)]
mod truth;

#[cfg(test)]
mod diagnosis_rules;
#[cfg(test)]
mod envoy;
#[cfg(test)]
mod hierarchy;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod libraries;
#[cfg(test)]
mod program;
