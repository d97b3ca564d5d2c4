//! What administration answers.

/// What is answered.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) media: &'static str,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, media: "text/plain; charset=utf-8", body: body.into() }
    }

    pub(super) fn json(value: &serde_json::Value) -> Self {
        Self { status: 200, media: "application/json", body: format!("{value:#}\n") }
    }
}
