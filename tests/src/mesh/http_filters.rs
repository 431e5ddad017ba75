//! HTTP filters of the sidecars.

use serde_json::{Map, Value, json};

use super::{MeshOptions, sidecar::TYPES};

/// Header that the Lua filter adds to responses.
pub const LUA_HEADER: &str = "x-lua-response";
/// One header each way.
const LUA: &str = "
function envoy_on_request(handle)
  handle:headers():add('x-lua-request', 'seen')
end
function envoy_on_response(handle)
  handle:headers():add('x-lua-response', 'seen')
end
";

/// Whose filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Outbound,
    Inbound,
}

/// The filters that are asked for, in Istio's order; the router is the last one.
pub(super) fn all(options: &MeshOptions, pod: &str, way: Way) -> Value {
    let mut filters = Vec::new();
    if options.rbac_policies > 0 {
        filters.push(filter(
            "rbac",
            "RBAC",
            &json!({ "rules": rbac(options.rbac_policies) }),
        ));
    }
    if options.lua {
        let code = json!({ "default_source_code": { "inline_string": LUA } });
        filters.push(filter("lua", "Lua", &code));
    }
    if pod == "server" && way == Way::Inbound {
        filters.extend(slow(options));
    }
    filters.push(filter("router", "Router", &json!({})));
    filters.into()
}

/// Filters that take time of a known size.
fn slow(options: &MeshOptions) -> Vec<Value> {
    let mut filters = Vec::new();
    if !options.inbound_delay.is_zero() {
        let delay = json!({
            "fixed_delay": format!("{}s", options.inbound_delay.as_secs_f64()),
            "percentage": { "numerator": 100, "denominator": "HUNDRED" },
        });
        filters.push(filter("fault", "HTTPFault", &json!({ "delay": delay })));
    }
    if !options.inbound_work.is_zero() {
        let code = format!(
            "function envoy_on_request(handle)
               local function now()
                 return tonumber(handle:timestampString(EnvoyTimestampResolution.MICROSECOND))
               end
               local start = now()
               while now() - start < {} do end
             end",
            options.inbound_work.as_micros()
        );
        let code = json!({ "default_source_code": { "inline_string": code } });
        let mut work = filter("lua", "Lua", &code);
        work["name"] = json!("work");
        filters.push(work);
    }
    filters
}

fn filter(folder: &str, message: &str, fields: &Value) -> Value {
    let mut typed = json!({
        "@type": format!("{TYPES}.extensions.filters.http.{folder}.v3.{message}"),
    });
    if let (Value::Object(typed), Value::Object(fields)) = (&mut typed, fields) {
        typed.extend(fields.clone());
    }
    json!({ "name": format!("envoy.filters.http.{folder}"), "typed_config": typed })
}

/// Policies as an `AuthorizationPolicy` becomes them. They are tried in the order of their names; only the
/// last one holds.
fn rbac(policies: u32) -> Value {
    let policy = |index: u32| {
        let last = index + 1 == policies;
        let path = if last {
            "/".into()
        } else {
            format!("/part/{index}/")
        };
        json!({
            "permissions": [{ "and_rules": { "rules": [
                { "header": { "name": ":method", "string_match": { "exact": "GET" } } },
                { "url_path": { "path": { "prefix": path } } },
            ] } }],
            "principals": [{ "any": true }],
        })
    };
    let named: Map<String, Value> = (0..policies)
        .map(|index| (format!("policy-{index:04}"), policy(index)))
        .collect();
    json!({ "action": "ALLOW", "policies": named })
}
