struct Orders;

#[belay::server]
impl Orders {
    #[tool(graze = "1s")]
    async fn ship(&self) {}

    #[prompt(colour(mood = "red"))]
    async fn ask(&self, mood: String) -> String {
        mood
    }
}

fn main() {
    // The mistakes above are all that is reported.
    let _ = belay::Server::from(Orders);
}
