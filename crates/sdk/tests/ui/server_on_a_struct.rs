#[belay::server(name = "orders")]
struct Orders;

fn main() {}
