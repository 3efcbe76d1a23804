struct Orders;

#[belay::server(name)]
impl Orders {}

fn main() {}
