// Which functions only hand on to others: wrappers of calls and event loops of Envoy, and the runtime of Rust
// programs. Names are foreign text: each is cut, and read once from left to right.

const LONGEST = 4096;

const ENVOY =
  /^(?:std::(?:function|__function|__invoke\w*|invoke\w*|__apply\w*|apply|visit|__do_visit|__variant_detail|__detail::__variant|_Function_handler|_Function_base|_Bind\w*)\b|absl::(?:\w+::)*(?:AnyInvocable|FunctionRef|LocalInvoker|RemoteInvoker|InvokeObject|InvokeR|InvokeFunction)\b|(?:event_base_loop|event_base_dispatch|event_process_active\w*|event_persist_closure|epoll_dispatch)$|Envoy::Event::(?:DispatcherImpl::(?:run|runPostCallbacks|post)\b|FileEventImpl\b|SchedulableCallbackImpl\b|LibeventScheduler\b|TimerImpl\b)|Envoy::Server::WorkerImpl::threadRoutine\b|Envoy::Thread::(?:Posix)?Thread(?:Factory|Impl)?\w*::)/;

const CRATES = /^(?:dyn |&mut |&)?(?:tokio|tokio_util|futures|futures_\w+|mio|std|core|alloc)::/;
const START =
  /^(?:_start|start_thread|(?:__)?clone3?|__GI___clone3?|__libc_start_(?:main|call_main|main_impl)|__rust_\w+|rust_begin_\w+)$/;

/** Where the closing bracket of the one at `from` is; the end when it is missing. */
function closing(name: string, from: number): number {
  let depth = 0;
  for (let i = from; i < name.length; i += 1) {
    const char = name[i];
    if (char === "<" || char === "(" || char === "[" || char === "{") depth += 1;
    // The head of an arrow closes nothing.
    else if (char === ">" && name[i - 1] === "-") continue;
    else if (char === ">" || char === ")" || char === "]" || char === "}") depth -= 1;
    if (depth === 0) return i;
  }
  return name.length - 1;
}

/** The qualified name of a C++ function, without its result, arguments, template arguments and ABI tags. */
export function plainName(full: string): string {
  const name = full
    .slice(0, LONGEST)
    .replace(/operator(?:\(\)|<=>|<<=?|>>=?|[<>]=?|->\*?)/g, "operator_")
    .replaceAll("(anonymous namespace)", "_anonymous")
    .replaceAll("::__1::", "::");
  const words: string[] = [""];
  for (let i = 0; i < name.length; i += 1) {
    const char = name[i]!;
    if (char === " ") words.push("");
    else if (char === "<" || char === "(" || char === "[" || char === "{") i = closing(name, i);
    else words[words.length - 1] += char;
  }
  const kept = words.filter((word) => word !== "" && !["const", "volatile", "&", "&&"].includes(word));
  return kept.at(-1) ?? "";
}

export function isEnvoyPlumbing(name: string): boolean {
  return ENVOY.test(plainName(name));
}

/** `<T as Trait>::method` is the runtime's when both are, or when T is any type. */
export function isRustPlumbing(full: string): boolean {
  const name = full.slice(0, LONGEST);
  if (START.test(name)) return true;
  // Names of C++ have arguments: its std is not that of Rust.
  if (/\)(?: const)?$/.test(name)) return false;
  if (!name.startsWith("<")) return CRATES.test(name);
  const end = closing(name, 0);
  const inside = name.slice(1, end);
  const as = inside.lastIndexOf(" as ");
  if (as === -1) return CRATES.test(inside);
  const [type, trait] = [inside.slice(0, as), inside.slice(as + 4)];
  return CRATES.test(trait) && (CRATES.test(type) || /^&?(?:mut )?[A-Z]\w?$/.test(type));
}
