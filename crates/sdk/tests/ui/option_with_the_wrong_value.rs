struct Orders;

#[belay::server]
impl Orders {
    #[tool(read_only = "yes")]
    async fn ship(&self) {}
}

fn main() {}
