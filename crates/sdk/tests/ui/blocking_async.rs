struct Orders;

#[belay::server]
impl Orders {
    #[tool(blocking)]
    async fn ship(&self) {}
}

fn main() {}
