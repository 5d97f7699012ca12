//! The functions that need no handler of their own: the manifest and the SQL say all about their calls. The first parameters are in
//! the path, the next ones are fields of the body, and the request ID is in a header.

use axum::extract::{FromRequestParts, Request};
use bytes::BytesMut;
use hotrow_sql::{Distribute, Function, Operation, REQUEST_ID};
use tokio_postgres::types::Type;

use crate::answer::Answered;
use crate::body::{self, Field};
use crate::calls::Call;
use crate::clients::{Key, Sessions, Value, one};
use crate::input::{self, Page, Query};
use crate::problem::Problem;
use crate::routes::Routes;
use crate::{limits, room};

/// Adds all functions that have no route yet.
pub fn routes(mut routes: Routes) -> Routes {
    for function in routes.missing() {
        // The routes stay until the program ends.
        let plain: &Plain = Box::leak(Box::new(Plain::of(function)));
        let handler = move |clients: Sessions, request: Request| plain.answer(clients, request);
        routes = routes.add(&function.name, handler);
    }
    routes
}

struct Plain {
    function: &'static Function,
    operation: &'static Operation,
    fields: Vec<Field>,
}

impl Plain {
    fn of(function: &'static Function) -> Self {
        let operation = function.http.at().expect("it has a route");
        let after_path = function.of_requests().iter().skip(operation.names().count());
        let fields = after_path.filter(|it| operation.body.is_some() && it.name != REQUEST_ID);
        Plain { function, operation, fields: fields.map(Field::of).collect() }
    }

    async fn answer(&'static self, clients: Sessions, request: Request) -> Answered {
        let (mut parts, body) = request.into_parts();
        let mut values = input::path(&mut parts, self.operation.names().count()).await?;
        if self.function.distribute == Some(Distribute::List) {
            values.extend(Query::<Page>::from_request_parts(&mut parts, &()).await?.0.values());
        }
        let key = if self.function.has_request_id() { Some(input::key(&parts.headers)?) } else { None };
        if !self.fields.is_empty() {
            let body = input::body(Request::from_parts(parts, body)).await?;
            values.extend(input::parse(&body, body::Fields(&self.fields))?);
        }
        values.extend(key.map(|key| Box::new(key) as Value));
        let (call, key) = (Call::of(&self.function.name), self.key(&values)?);
        let Some(rows) = &self.operation.rows else { return one(&clients, call, key, values).await };
        let most = self.wire(&values, "max")?.and_then(|bytes| <[u8; 4]>::try_from(&bytes[..]).ok());
        let bytes = match self.function.distribute {
            Some(Distribute::List) => limits::HTTP_ROW_BYTES,
            _ => limits::HTTP_BODY_BYTES_MAX,
        };
        let bytes = room::rows(most.map_or(i32::MAX, i32::from_be_bytes), bytes);
        clients.list(rows, call, key, values, bytes).await
    }

    /// The key of a call. Calls that can contend for a row have the same parameter as key.
    fn key(&self, values: &[Value]) -> Result<Key, Problem> {
        let name = match (&self.function.merge, &self.function.distribute) {
            (Some(merge), _) => &merge.key,
            (None, Some(Distribute::By(name))) => name,
            _ => return Ok(Key::of(self.function.area)),
        };
        Ok(self.wire(values, name)?.map_or_else(|| Key::of(self.function.area), |bytes| Key::of(&bytes[..])))
    }

    /// The value of a parameter as it is sent to the server.
    fn wire(&self, values: &[Value], name: &str) -> Result<Option<BytesMut>, Problem> {
        let Some(place) = self.function.parameters.iter().position(|it| it.name == name) else {
            return Ok(None);
        };
        let of = match self.function.parameters[place].of.as_str() {
            "bigint" => Type::INT8,
            "int" => Type::INT4,
            "uuid" => Type::UUID,
            _ => Type::TEXT,
        };
        let mut bytes = BytesMut::new();
        let value = values.get(place).map(|value| value.to_sql_checked(&of, &mut bytes)).transpose();
        value.map_err(|error| Problem::internal(&error))?;
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api, openapi};

    #[test]
    fn a_body_has_the_fields_of_its_schema_and_requires_those_without_a_default() {
        for function in api::with_handlers().missing() {
            let Some(name) = &function.http.at().unwrap().body else { continue };
            let schema = openapi::schema(name);
            let plain = Plain::of(function);
            let mut fields: Vec<_> = plain.fields.iter().map(|field| field.name).collect();
            let required: Vec<_> =
                plain.fields.iter().filter(|it| it.default.is_none()).map(|it| it.name).collect();
            fields.sort_unstable();
            let documented: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(
                fields, documented,
                "{}: the schema {name} has fields that are no parameters",
                function.name
            );
            let documented = schema["required"].as_array().cloned().unwrap_or_default();
            assert_eq!(
                documented, required,
                "{}: the schema {name} and the parameters without a default",
                function.name
            );
        }
    }
}
