struct Orders;

#[belay::server]
impl Orders {
    #[tool]
    async fn ship(&self) {}

    #[tool(name = "ship")]
    async fn ship_again(&self) {}
}

fn main() {}
