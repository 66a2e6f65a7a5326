use crate::proto::record::ResultCode;

/// What stands in the status field where no status came: Heritrix's number for the nearest meaning. The result
/// code's own name is among the notes.
pub fn code_without_status(result: ResultCode) -> i32 {
    use ResultCode as R;
    match result {
        // These are answers; without a status they say nothing.
        R::Ok | R::Redirect | R::NotModified | R::HttpError | R::TooLarge | R::DecodeFailed | R::Other => 0,
        R::DnsFailed => -1,
        R::ConnectRefused | R::ConnectTimeout | R::ConnectFailed | R::TlsFailed => -2,
        R::Reset | R::Empty | R::Truncated => -3,
        R::ReadTimeout | R::TotalTimeout | R::TooSlow => -4,
        R::Malformed => -5,
        R::BadUrl => -7,
        R::RedirectLoop | R::TooManyRedirects => -4001,
        R::BlockedAddress => -5001,
        R::ShardDied => -7000,
        R::HostSetAside => -8,
        R::RobotsDenied => -9998,
    }
}
