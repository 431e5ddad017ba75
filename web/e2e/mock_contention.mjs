// Who had the CPU while threads waited for one.

const holder = (kind, name, pid, container_name, ns, waited_ns) => ({
  kind,
  title:
    kind === "same_process"
      ? "other threads of the same process"
      : container_name === null
        ? name
        : `${name} (container ${container_name})`,
  name,
  pid,
  container: container_name === null ? null : "9f2c".repeat(16),
  container_name,
  ns,
  share_percent: (100 * ns) / waited_ns,
});

const group = (kind, name, ns) => ({ kind, name, ns, share_percent: (100 * ns) / 5e9 });

/** Who had the CPU for the most part of 5 s; the rest is not known. */
export const CONTENTION = {
  waited_ns: 5e9,
  known_ns: 4.9e9,
  holders: [
    holder("process", "chromium", 901, null, 2.3e9, 5e9),
    holder("process", "node", 77, "shop/cart-7d9f/cart", 1.4e9, 5e9),
    holder("same_process", "envoy", 4242, "shop/front-5b8c/istio-proxy", 1.2e9, 5e9),
  ],
  by_container: [
    group("outside", null, 2.3e9),
    group("container", "shop/cart-7d9f/cart", 1.4e9),
    group("container", "shop/front-5b8c/istio-proxy", 1.2e9),
  ],
  by_pod: [
    group("outside", null, 2.3e9),
    group("pod", "shop/cart-7d9f", 1.4e9),
    group("pod", "shop/front-5b8c", 1.2e9),
  ],
};
