#[derive(serde::Serialize, schemars::JsonSchema)]
struct Broken;

struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&self) -> Result<String, Broken> {
        Err(Broken)
    }
}

fn main() {}
