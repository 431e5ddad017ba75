//! `PostgreSQL` with psql and pgbench.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{free_port, held};
use crate::{
    paths,
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(1);
/// Debian's folder of the installed major version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// It does not run as root; this user (`nobody`) is there everywhere.
const USER: u32 = 65_534;
const HOST: &str = "127.0.0.1";

/// Stands between the answers of a script.
pub(super) const MARK: &str = "@@NEXT@@";

/// Writes a script of what `each` makes of a statement, which it is given as the digits of its bytes, so that only the
/// server reads it.
pub(super) fn script(
    folder: &Path,
    statements: &[String],
    each: impl Fn(&str) -> String,
) -> Result<PathBuf> {
    let hexadecimal = |text: &String| {
        let digits: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    };
    let lines = statements
        .iter()
        .map(|statement| each(&hexadecimal(statement)));
    let path = folder.join("values.sql");
    fs::write(&path, lines.collect::<Vec<_>>().concat()).context("write the statements")?;
    Ok(path)
}

/// The answers of a script.
pub(super) fn marked(output: &str) -> impl Iterator<Item = &str> {
    output.split(MARK).skip(1)
}

fn without_tags(xml: &str) -> String {
    let mut text = String::new();
    for piece in xml.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_tag, behind)| behind));
    }
    text
}

/// A running server with a database of its own.
#[derive(Debug)]
pub struct Postgres {
    server: Running,
    pub port: u16,
    programs: PathBuf,
    /// The folder of its Unix socket.
    sockets: PathBuf,
    log: PathBuf,
}

impl Postgres {
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, "")
    }

    /// With TLS, by the certificate and key in `folder`.
    pub fn start_tls(folder: &Path) -> Result<Self> {
        // It takes a key only from its own user or from root, and only if no others read it.
        let key = folder.join("server.key");
        std::os::unix::fs::chown(&key, Some(USER), Some(USER)).context("give the key away")?;
        rustix::fs::chmod(&key, rustix::fs::Mode::from_raw_mode(0o600)).context("hide the key")?;
        let tls = format!(
            "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
            folder.join("server.pem").display(),
            key.display()
        );
        Self::start_with(folder, &tls)
    }

    fn start_with(folder: &Path, more: &str) -> Result<Self> {
        let programs = programs()?;
        let port = free_port()?;
        let data = folder.join("postgresql");
        fs::create_dir(&data).context("make the data folder")?;
        std::os::unix::fs::chown(&data, Some(USER), Some(USER)).context("give it away")?;
        // The folder above is root's: others may pass it.
        let passable = rustix::fs::Mode::from_raw_mode(0o711);
        rustix::fs::chmod(folder, passable).context("let the server pass")?;
        Launch::new(&programs.join("initdb"), "initdb", folder)
            .args([
                "--username=tester",
                "--auth=trust",
                "--no-sync",
                "--encoding=UTF8",
            ])
            .args(["--pgdata".as_ref(), data.as_os_str()])
            .env("LC_ALL", "C")
            .current_dir(&data)
            .user(USER)
            .start()?
            .finish(LIMIT)?;
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\n\
             fsync = off\nlog_statement = all\nlog_connections = on\nlog_line_prefix = ''\nautovacuum = off\n{more}",
            data.display()
        );
        let configuration = data.join("postgresql.auto.conf");
        fs::write(&configuration, settings).context("write the configuration")?;
        let mut server = Launch::new(&programs.join("postgres"), "postgres", folder)
            .args(["-D".as_ref(), data.as_os_str()])
            .current_dir(&data)
            .user(USER)
            .start()?;
        wait_until("postgres listens", LIMIT, || {
            !server.is_running() || server.errors().contains("ready to accept connections")
        })?;
        ensure!(server.is_running(), "it ended: {}", server.errors());
        ensure!(
            TcpStream::connect(("127.0.0.1", port)).is_ok(),
            "nothing listens at {port}"
        );
        Ok(Self {
            server,
            port,
            programs,
            sockets: data,
            log: folder.join("postgres.err"),
        })
    }

    /// The postmaster; every connection has a child of its own.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Runs the statements, each one a query of its own, whatever becomes of them; psql's pid.
    pub fn psql(&self, folder: &Path, statements: &[&str]) -> Result<u32> {
        self.psql_at(HOST, folder, statements)
    }

    /// The same over its Unix socket.
    pub fn psql_unix(&self, folder: &Path, statements: &[&str]) -> Result<u32> {
        self.psql_at(&self.sockets.display().to_string(), folder, statements)
    }

    fn psql_at(&self, host: &str, folder: &Path, statements: &[&str]) -> Result<u32> {
        let script = folder.join("statements.sql");
        fs::write(&script, statements.join(";\n") + ";\n").context("write the statements")?;
        let script = script.display().to_string();
        let arguments = ["--no-psqlrc", "--quiet", "--host", host, "--file", &script];
        self.client(folder, "psql", &arguments)
    }

    /// What each statement answers, when the server takes it as one that reads: values as text, without names of columns.
    pub fn values(&self, folder: &Path, statements: &[String]) -> Result<Vec<String>> {
        let path = script(folder, statements, |hex| {
            format!(
                "\\echo {MARK}\nSELECT query_to_xml(convert_from('\\x{hex}'::bytea, 'UTF8'), true, false, '');\n"
            )
        })?;
        let path = path.display().to_string();
        let options = ["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"];
        let output = self.answered(folder, "psql", &[&options[..], &["--file", &path]].concat())?;
        Ok(marked(&output).map(without_tags).collect())
    }

    /// Runs a script `transactions` times on each of `clients` connections, `rate` times in a second;
    /// pgbench's pid.
    pub fn pgbench(
        &self,
        folder: &Path,
        script: &str,
        mode: &str,
        [transactions, clients, rate]: [u32; 3],
    ) -> Result<u32> {
        let path = folder.join("pgbench.sql");
        fs::write(&path, script).context("write the script")?;
        let arguments = [
            "--no-vacuum".to_owned(),
            format!("--protocol={mode}"),
            format!("--transactions={transactions}"),
            format!("--client={clients}"),
            format!("--rate={rate}"),
            format!("--file={}", path.display()),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.client(folder, "pgbench", &arguments)
    }

    /// Runs `tests/fixtures/peers/psycopg2_client.py`, held until the agent has put probes into it: its pid and
    /// the file of its TLS library.
    pub fn psycopg2(&self, folder: &Path) -> Result<(u32, String)> {
        let script = paths::workspace().join("tests/fixtures/peers/psycopg2_client.py");
        let wheel = paths::tool("psycopg2-binary-")?.display().to_string();
        let client = Launch::new(Path::new("/usr/bin/python3"), "psycopg2", folder)
            .args([script])
            .args([self.port.to_string()])
            .env("PYTHONPATH", &wheel)
            .start()?;
        held::release(&client)?;
        let pid = client.pid();
        Ok((pid, client.finish(LIMIT)?.trim().to_owned()))
    }

    fn client(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<u32> {
        let client = self.launch(folder, program, arguments)?;
        let pid = client.pid();
        client.finish(LIMIT)?;
        Ok(pid)
    }

    fn answered(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
        self.launch(folder, program, arguments)?.finish(LIMIT)
    }

    fn launch(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<Running> {
        let client = Launch::new(&self.programs.join(program), program, folder)
            .args(arguments)
            .env("PGHOST", HOST)
            .env("PGPORT", &self.port.to_string())
            .env("PGUSER", "tester")
            .env("PGDATABASE", "postgres")
            .env("PGGSSENCMODE", "disable")
            .start()?;
        Ok(client)
    }

    /// How many statements the server was sent and prepared ones it ran, and how many connections were
    /// let in, by its own log.
    pub fn logged(&self) -> Result<(usize, usize)> {
        let log = fs::read_to_string(&self.log).context("read the log")?;
        let count = |begin: &str| log.lines().filter(|line| line.starts_with(begin)).count();
        let statements = count("LOG:  statement: ") + count("LOG:  execute ");
        Ok((statements, count("LOG:  connection authorized: ")))
    }
}

fn programs() -> Result<PathBuf> {
    let folders = fs::read_dir(VERSIONS).context("no PostgreSQL (Debian package postgresql)")?;
    for folder in folders {
        let programs = folder
            .context("list PostgreSQL's versions")?
            .path()
            .join("bin");
        if programs.join("initdb").is_file() {
            return Ok(programs);
        }
    }
    bail!("no initdb below {VERSIONS} (Debian package postgresql)")
}
