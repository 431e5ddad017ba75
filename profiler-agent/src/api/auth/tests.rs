use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn file(dir: &Path, text: &str, mode: u32) -> PathBuf {
    let path = dir.join("given");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn a_fresh_token_is_private_and_new_at_each_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = Token::fresh(dir.path()).unwrap();
    let path = dir.path().join("token");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(first.reveal().len(), 64);
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), first.reveal());
    let second = Token::fresh(dir.path()).unwrap();
    assert_ne!(first, second);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary file is left"
    );
}

#[test]
fn a_planted_link_is_replaced_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "unchanged").unwrap();
    symlink(&victim, dir.path().join("token")).unwrap();
    Token::fresh(dir.path()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "unchanged");
    assert!(
        fs::symlink_metadata(dir.path().join("token"))
            .unwrap()
            .is_file()
    );
}

#[test]
fn a_token_file_is_made_once_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kept");
    let made = Token::from_file(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(Token::from_file(&path).unwrap(), made);
}

#[test]
fn an_unsafe_token_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let good = "a".repeat(64);
    let error = |path: &Path| Token::from_file(path).unwrap_err().to_string();

    let path = file(dir.path(), &good, 0o644);
    assert_eq!(
        error(&path),
        format!(
            "token file {} can be read by others (mode 0644): chmod 600 it",
            path.display()
        )
    );
    let path = file(dir.path(), "short", 0o600);
    assert!(
        error(&path).contains("must hold one token of 32 to 256"),
        "{}",
        error(&path)
    );
    let path = file(dir.path(), &format!("{good}\nsecond line {good}"), 0o600);
    assert!(error(&path).contains("must hold one token"));

    let path = file(dir.path(), &good, 0o600);
    assert_eq!(Token::from_file(&path).unwrap().reveal(), good);
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(
        error(&link),
        format!(
            "token file {} is a symbolic link: give the file itself",
            link.display()
        )
    );
    assert_eq!(
        error(dir.path()),
        format!(
            "token file {} is not a regular file: give one that holds the token, or that is to be made",
            dir.path().display()
        )
    );
}

#[test]
fn debug_output_hides_the_token() {
    let token = Token::random().unwrap();
    assert_eq!(format!("{token:?}"), "Token(***)");
}

#[test]
fn the_data_directory_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("a/b");
    prepare_data_dir(&made).unwrap();
    assert_eq!(mode(&made), 0o700);

    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
    prepare_data_dir(&made).unwrap();
    assert_eq!(mode(&made), 0o700, "an empty directory is tightened");

    fs::write(made.join("x"), "x").unwrap();
    fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        prepare_data_dir(&made).unwrap_err().to_string(),
        format!(
            "data directory {} is open to other users (mode 0755): choose a folder of the agent's own \
             with --data-dir, or chmod 700 this one if it is",
            made.display()
        )
    );
}
