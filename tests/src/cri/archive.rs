//! An image of one program as an OCI archive, made without an engine.

use std::{fs::File, path::Path};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header};

use crate::docker;

/// Writes an image that runs `program` with `arguments`, named `name` in full. The program lies in the root, under its
/// own name.
pub(super) fn write(file: &Path, name: &str, program: &Path, arguments: &[&str]) -> Result<()> {
    let inside = program.file_name().context("a program has a name")?;
    let inside = inside.to_str().context("a program's name is text")?;
    let (root, _guard) = docker::root_of(program, inside)?;
    let mut layer = Builder::new(Vec::new());
    layer
        .append_dir_all(".", &root)
        .context("put the files together")?;
    let layer = Blob::new("layer.v1.tar", layer.into_inner().context("end the layer")?);
    let configuration = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": [format!("/{inside}")], "Cmd": arguments },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    });
    let configuration = Blob::new("config.v1+json", configuration.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "config": configuration.listed(),
        "layers": [layer.listed()],
    });
    let manifest = Blob::new("manifest.v1+json", manifest.to_string().into_bytes());
    let mut listed = manifest.listed();
    listed["annotations"] = json!({ "io.containerd.image.name": name });
    let index = json!({ "schemaVersion": 2, "manifests": [listed] }).to_string();
    let layout = json!({ "imageLayoutVersion": "1.0.0" }).to_string();

    let output = File::create(file).with_context(|| format!("create {}", file.display()))?;
    let mut archive = Builder::new(output);
    append(&mut archive, "oci-layout", layout.as_bytes())?;
    for blob in [&layer, &configuration, &manifest] {
        let path = format!("blobs/{}", blob.digest.replace(':', "/"));
        append(&mut archive, &path, &blob.content)?;
    }
    append(&mut archive, "index.json", index.as_bytes())?;
    archive.into_inner().context("end the archive").map(drop)
}

/// A part of the image, found by its hash.
struct Blob {
    kind: &'static str,
    content: Vec<u8>,
    digest: String,
}

impl Blob {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        let digest = format!("sha256:{:x}", Sha256::digest(&content));
        Self {
            kind,
            content,
            digest,
        }
    }

    /// How others name it.
    fn listed(&self) -> Value {
        json!({
            "mediaType": format!("application/vnd.oci.image.{}", self.kind),
            "digest": self.digest,
            "size": self.content.len(),
        })
    }
}

fn append(archive: &mut Builder<File>, path: &str, content: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(u64::try_from(content.len()).context("its size")?);
    header.set_mode(0o644);
    let added = archive.append_data(&mut header, path, content);
    added.with_context(|| format!("add {path}"))
}
