//! The TOML file: a flat table of the same keys as the flags. Unknown keys are errors.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use super::settings::{ConfigError, Origin, Settings, VARIABLE, keys};

/// Far more than all settings need.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the settings in the file at `path`.
pub(super) fn read(path: &Path) -> Result<Settings, ConfigError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .and_then(|bytes| match bytes as u64 {
            ..=MAX_BYTES => Ok(()),
            _ => Err(io::Error::other("it is larger than 1 MiB")),
        })
        .map_err(|source| ConfigError::ReadFile {
            path: path.to_owned(),
            source,
        })?;
    parse(&text, path)
}

fn parse(text: &str, path: &Path) -> Result<Settings, ConfigError> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigError::Toml {
            path: path.to_owned(),
            detail: error.to_string().trim_end().to_owned(),
        })?;
    let mut settings = Settings::default();
    for (name, value) in &table {
        // A file cannot name another file.
        let known = keys().find(|key| key == name && *key != "config");
        let Some(key) = known else {
            return Err(ConfigError::UnknownKey {
                path: path.to_owned(),
                key: name.clone(),
                hint: hint(name),
            });
        };
        let origin = Origin::File {
            key,
            path: path.to_owned(),
        };
        let values = match value {
            toml::Value::Array(items) if key == "deny_probe" => {
                items.iter().map(scalar).collect::<Option<Vec<_>>>()
            }
            other => scalar(other).map(|text| vec![text]),
        };
        let Some(values) = values else {
            return Err(ConfigError::Invalid {
                origin: origin.to_string(),
                value: value.to_string(),
                problem: "has the wrong type: give a string, a number or a boolean".into(),
            });
        };
        settings.set(key, values, origin);
    }
    Ok(settings)
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

/// Names the key that was probably meant, otherwise all of them.
fn hint(name: &str) -> String {
    let known = || keys().filter(|key| *key != "config");
    match near(name, known()) {
        Some(key) => format!("did you mean `{key}`?"),
        None => format!("known keys are {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// Variables that are not settings, with the ones that were probably meant.
pub fn mistyped_variables(names: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let meant = |name: String| {
        let given = name.strip_prefix(VARIABLE)?;
        let key = near(given, keys())?;
        let meant = format!("{VARIABLE}{}", key.to_uppercase());
        (meant != name).then_some((name, meant))
    };
    names.filter_map(meant).collect()
}

/// The key that was probably meant.
fn near(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let wanted = name.to_lowercase().replace('-', "_");
    known
        .map(|key| (distance(key, &wanted), key))
        .min()
        .filter(|(distance, _)| *distance <= 2)
        .map(|(_, key)| key)
}

/// Levenshtein distance in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
