struct Orders;

#[belay::server]
impl Orders {
    #[tool(timeout = "1 second")]
    async fn ship(&self) {}
}

fn main() {}
