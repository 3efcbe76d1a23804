struct Orders;

impl Orders {
    #[belay::tool]
    async fn ship(&self) {}
}

fn main() {}
