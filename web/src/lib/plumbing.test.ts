import { describe, expect, it } from "vitest";
import { isEnvoyPlumbing, isRustPlumbing, plainName } from "./plumbing";

describe("plumbing", () => {
  it("is told by the qualified name of a C++ function", () => {
    for (const [full, plain] of [
      [
        "bool std::__1::__invoke_void_return_wrapper<bool, false>::__call[abi:ne180100]<F>(F&)",
        "std::__invoke_void_return_wrapper::__call",
      ],
      [
        "decltype(std::declval<F>()(std::declval<A>())) std::__1::__invoke[abi:ne180100]<F, A>(F&&, A&&)",
        "std::__invoke",
      ],
      [
        "Envoy::Router::Filter::decodeHeaders(Envoy::Http::RequestHeaderMap&, bool)::$_1::operator()(int) const",
        "Envoy::Router::Filter::decodeHeaders::$_1::operator_",
      ],
      ["std::ostream& operator<< <char>(std::ostream&, char)", "operator_"],
      ["event_base_loop", "event_base_loop"],
      ["(anonymous namespace)::run(int)", "_anonymous::run"],
      ["broken<", "broken"],
      ["", ""],
    ] as const)
      expect(plainName(full), full).toBe(plain);
  });

  it("of Envoy is what wraps calls, and the event loop", () => {
    for (const name of [
      "std::_Function_handler<void (unsigned int), Envoy::Event::FileEventImpl>::_M_invoke(std::_Any_data const&, unsigned int&&)",
      "Envoy::Network::FilterStatus std::__1::__function::__policy_invoker<R ()>::__call_impl<F>(void*)",
      "std::enable_if<true, void>::type std::__invoke_r<void, F&>(F&)",
      "decltype(auto) std::__do_visit<R, F>(F&&)",
      "void absl::functional_internal::InvokeObject<F, void>(absl::functional_internal::VoidPtr)",
      "event_base_loop",
      "event_process_active_single_queue",
      "epoll_dispatch",
      "event_persist_closure",
      "Envoy::Event::DispatcherImpl::run(Envoy::Event::Dispatcher::RunType)",
      "Envoy::Server::WorkerImpl::threadRoutine(Envoy::OptRef<Envoy::Server::GuardDog>)",
    ])
      expect(isEnvoyPlumbing(name), name).toBe(true);
    for (const name of [
      "Envoy::Router::Filter::decodeHeaders(Envoy::Http::RequestHeaderMap&, bool)::$_1::operator()(int) const",
      "Envoy::Lua::doHeavyWork()::{lambda(int)#1}::operator()(int) const",
      "absl::hash_internal::Hash<int>::operator()(int const&) const",
      "Envoy::Thread::MutexBasicLockable::lock()",
      "Envoy::Event::DispatcherImpl::runFatalActionsOnTrackedObject(std::list<int> const&) const",
      "std::vector<int>::push_back(int&&)",
      "my_event_base_loop_user",
    ])
      expect(isEnvoyPlumbing(name), name).toBe(false);
  });

  it("of Rust is its runtime, and no std of C++", () => {
    for (const name of [
      "tokio::runtime::task::raw::poll",
      "<tokio::runtime::task::core::Core<T,S> as core::future::Future>::poll",
      "<F as futures_core::future::TryFuture>::try_poll",
      "mio::poll::Poll::poll",
      "std::rt::lang_start::{{closure}}",
      "core::ops::function::FnOnce::call_once",
      "__clone3",
      "__GI___clone",
      "_start",
      "start_thread",
    ])
      expect(isRustPlumbing(name), name).toBe(true);
    for (const name of [
      "std::sort<int*>(int*, int*)",
      "std::vector<int, std::allocator<int>>::push_back(int&&)",
      "<std::collections::HashMap<K,V> as my_app::Store>::lookup",
      "<Vec<T> as my_app::Encode>::encode",
      "<core::option::Option<T> as serde::Serialize>::serialize",
      "<my_app::Handler as core::future::Future>::poll",
      "_start_compression(int)",
      "__startup_worker",
      "my_app::std::thing",
    ])
      expect(isRustPlumbing(name), name).toBe(false);
  });

  it("takes any text", () => {
    for (const text of ["<".repeat(9000), "(".repeat(9000), "a b c d", "<a as ", "->>->", "\u{202e}<"]) {
      expect(typeof isEnvoyPlumbing(text)).toBe("boolean");
      expect(typeof isRustPlumbing(text)).toBe("boolean");
    }
  });
});
