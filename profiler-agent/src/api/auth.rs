//! The bearer tokens: made or read at start, kept in files that only their owner can read, and
//! compared in constant time.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use subtle::ConstantTimeEq;

use crate::config::{ArgumentPolicy, TOKEN_FILE};

/// Random bytes in a token; twice as many hex digits.
const TOKEN_BYTES: usize = 32;
/// A token is also part of a URL: these lengths, and only characters that need no escaping there.
const MIN_TOKEN_CHARS: usize = 32;
const MAX_TOKEN_CHARS: usize = 256;
/// What to do when its file cannot be read or written.
const TOKEN_REMEDY: &str = "its folder must be there and writable for the agent's user: \
                            see --data-dir and --token-file";

#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{action} {}: {source}; {remedy}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        remedy: &'static str,
        source: io::Error,
    },
    #[error("data directory {} is open to other users (mode {mode:04o}): choose a folder of the agent's own with --data-dir, or chmod 700 this one if it is", path.display())]
    OpenDirectory { path: PathBuf, mode: u32 },
    #[error("data directory {} belongs to user {owner}, not to the agent's user {user}: choose another with --data-dir", path.display())]
    ForeignDirectory {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("data directory {} is not a directory: choose another with --data-dir", path.display())]
    NotDirectory { path: PathBuf },
    #[error("token file {} is a symbolic link: give the file itself", path.display())]
    SymbolicLink { path: PathBuf },
    #[error("token file {} is not a regular file: give one that holds the token, or that is to be made", path.display())]
    NotRegular { path: PathBuf },
    #[error("token file {} can be read by others (mode {mode:04o}): chmod 600 it", path.display())]
    Readable { path: PathBuf, mode: u32 },
    #[error("token file {} belongs to user {owner}, neither root nor the agent's user {user}: chown it", path.display())]
    ForeignFile {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("token file {} must hold one token of {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS} letters, digits, - . _ or ~: make one with `openssl rand -hex 32`", path.display())]
    BadToken { path: PathBuf },
    #[error("read-only token file {} holds the full token: give a file of its own with --read-only-token-file", path.display())]
    SameToken { path: PathBuf },
    #[error("read random bytes: {0}")]
    Random(getrandom::Error),
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Read results, lists, metrics and streams, and change nothing.
    Look,
    Full,
}

impl Role {
    /// How arguments of processes are shown to it.
    pub(super) fn arguments(self, policy: ArgumentPolicy) -> ArgumentPolicy {
        match self {
            Self::Look => ArgumentPolicy::Masked,
            Self::Full => policy,
        }
    }
}

/// The secret that requests must carry. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Makes a fresh token and writes it to [`TOKEN_FILE`] in the data directory.
    pub fn fresh(data_dir: &Path) -> Result<Self, AuthError> {
        let token = Self::random()?;
        token.write(&data_dir.join(TOKEN_FILE))?;
        Ok(token)
    }

    /// Reads the token in `path`, or makes the file when it is missing.
    pub fn from_file(path: &Path) -> Result<Self, AuthError> {
        match Self::read(path) {
            Err(AuthError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let token = Self::random()?;
                token.write(path)?;
                Ok(token)
            }
            other => other,
        }
    }

    /// A token as it stands in its file; `None` for what cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let token = text.trim_end();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let fits = (MIN_TOKEN_CHARS..=MAX_TOKEN_CHARS).contains(&token.len());
        (fits && token.bytes().all(allowed)).then(|| Self(token.to_owned()))
    }

    /// The token as text, for the URL that is printed for people.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn random() -> Result<Self, AuthError> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(AuthError::Random)?;
        Ok(Self(hex(&bytes)))
    }

    fn read(path: &Path) -> Result<Self, AuthError> {
        let failed = |action| {
            move |source| AuthError::Io {
                action,
                path: path.to_owned(),
                remedy: TOKEN_REMEDY,
                source,
            }
        };
        // Not following links and not blocking: a link, a FIFO or a device must not fool us.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = match fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)
        {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(AuthError::SymbolicLink {
                    path: path.to_owned(),
                });
            }
            other => other.map_err(failed("open token file"))?,
        };
        let data = file
            .metadata()
            .map_err(failed("read attributes of token file"))?;
        if !data.is_file() {
            return Err(AuthError::NotRegular {
                path: path.to_owned(),
            });
        }
        let user = rustix::process::geteuid().as_raw();
        if data.uid() != 0 && data.uid() != user {
            return Err(AuthError::ForeignFile {
                path: path.to_owned(),
                owner: data.uid(),
                user,
            });
        }
        let mode = data.mode() & 0o7777;
        if open_to_others(mode) {
            return Err(AuthError::Readable {
                path: path.to_owned(),
                mode,
            });
        }
        let mut text = String::new();
        let limit = (MAX_TOKEN_CHARS + 16) as u64;
        match file.take(limit).read_to_string(&mut text) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(AuthError::BadToken {
                    path: path.to_owned(),
                });
            }
            other => other.map_err(failed("read token file"))?,
        };
        Self::parse(&text).ok_or_else(|| AuthError::BadToken {
            path: path.to_owned(),
        })
    }

    /// Replaces `path` at once: a reader sees the old token or the new one, never a part.
    fn write(&self, path: &Path) -> Result<(), AuthError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new-{}", std::process::id()));
        let temporary = path.with_file_name(name);
        // What an agent with the same pid left behind when it was killed.
        if let Err(error) = fs::remove_file(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(AuthError::Io {
                action: "remove",
                path: temporary,
                remedy: TOKEN_REMEDY,
                source: error,
            });
        }
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(format!("{}\n", self.0).as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(|source| AuthError::Io {
            action: "write token file",
            path: path.to_owned(),
            remedy: TOKEN_REMEDY,
            source,
        })
    }

    fn matches(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

/// The tokens of one agent. Without the full one every request may do everything.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    full: Option<Token>,
    read_only: Option<Token>,
}

impl Tokens {
    /// No token at all: only ever on loopback.
    pub fn none() -> Self {
        Self::default()
    }

    /// One token, which may do everything.
    pub fn new(token: Token) -> Self {
        Self {
            full: Some(token),
            read_only: None,
        }
    }

    /// Adds the token in `path`, which may only look; it is made when it is missing.
    pub fn with_read_only(mut self, path: &Path) -> Result<Self, AuthError> {
        let token = Token::from_file(path)?;
        if self.full.as_ref() == Some(&token) {
            return Err(AuthError::SameToken {
                path: path.to_owned(),
            });
        }
        self.read_only = Some(token);
        Ok(self)
    }

    /// The token that may do everything; `None` when none is needed.
    pub fn full_token(&self) -> Option<&Token> {
        self.full.as_ref()
    }

    /// Every token, for what must not be shown.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        [&self.full, &self.read_only]
            .into_iter()
            .flatten()
            .map(Token::reveal)
    }

    /// The role of a token; `None` for an unknown one. Both tokens are always compared.
    pub(super) fn role_of(&self, given: &[u8]) -> Option<Role> {
        let is = |token: &Option<Token>| token.as_ref().is_some_and(|token| token.matches(given));
        match (is(&self.full), is(&self.read_only)) {
            (true, _) => Some(Role::Full),
            (false, true) => Some(Role::Look),
            (false, false) => None,
        }
    }
}

/// Lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Whether the group or everybody has any right.
fn open_to_others(mode: u32) -> bool {
    mode & 0o077 != 0
}

/// Makes the data directory with mode 0700, or checks the one that is there. One that is empty
/// and ours is tightened; a used one that others can enter is refused, since it may be shared.
pub fn prepare_data_dir(path: &Path) -> Result<(), AuthError> {
    let failed = |action| {
        move |source| AuthError::Io {
            action,
            path: path.to_owned(),
            remedy: "choose a folder that the agent's user may write to with --data-dir",
            source,
        }
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed("create data directory"))?;
    let data = fs::metadata(path).map_err(failed("read attributes of data directory"))?;
    if !data.is_dir() {
        return Err(AuthError::NotDirectory {
            path: path.to_owned(),
        });
    }
    let user = rustix::process::geteuid().as_raw();
    if data.uid() != user {
        return Err(AuthError::ForeignDirectory {
            path: path.to_owned(),
            owner: data.uid(),
            user,
        });
    }
    let mode = data.mode() & 0o7777;
    if !open_to_others(mode) {
        return Ok(());
    }
    let empty = fs::read_dir(path)
        .map_err(failed("list data directory"))?
        .next()
        .is_none();
    if !empty {
        return Err(AuthError::OpenDirectory {
            path: path.to_owned(),
            mode,
        });
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(failed("set mode of data directory"))
}

#[cfg(test)]
mod tests;
