//! Files of YAML, such as those of deploy/, as objects.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

use super::Client;
use crate::paths;

/// What people replace in the files of deploy/kubernetes before they apply them.
pub const PLACEHOLDER: &str = "API-SERVER-BLOCK";

/// Applies every object of a file below deploy/kubernetes, and returns them as they then are. `api_server`, a block of addresses, takes
/// the place of [`PLACEHOLDER`].
pub fn apply(client: &Client, name: &str, api_server: &str) -> Result<Vec<Value>> {
    let mut objects = read(&paths::workspace().join("deploy/kubernetes").join(name))?;
    for object in &mut objects {
        let text = object.to_string().replace(PLACEHOLDER, api_server);
        *object = serde_json::from_str(&text).context("replace the placeholder")?;
    }
    let applied = objects.iter().map(|object| {
        let answer = client.apply(object);
        answer.with_context(|| format!("apply {} of {name}", object["kind"]))
    });
    applied.collect()
}

/// The objects of a file.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

/// The objects of a text.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    let documents = Yaml::load_from_str(text).context("parse YAML")?;
    documents.iter().map(json).collect()
}

fn json(yaml: &Yaml<'_>) -> Result<Value> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.into_inner().into(),
        Yaml::Value(Scalar::String(value)) => value.as_ref().into(),
        Yaml::Sequence(values) => values.iter().map(json).collect::<Result<Vec<_>>>()?.into(),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let key = key.as_str().context("a key that is not text")?;
                Ok((key.to_owned(), json(value)?))
            });
            entries.collect::<Result<Map<_, _>>>()?.into()
        }
        other => bail!("{other:?} is nothing that manifests have"),
    })
}
