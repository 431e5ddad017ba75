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

/// The filters that are asked for, in Istio's order; the router is the last one.
pub(super) fn all(options: &MeshOptions) -> Value {
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
    filters.push(filter("router", "Router", &json!({})));
    filters.into()
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
