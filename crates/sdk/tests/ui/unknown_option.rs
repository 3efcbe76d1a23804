struct Orders;

#[belay::server]
impl Orders {
    #[tool(graze = "1s")]
    async fn ship(&self) {}
}

fn main() {}
