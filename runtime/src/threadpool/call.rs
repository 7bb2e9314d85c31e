//! Functions of several arguments, called with a tuple: `apply(f, (a, b))`.

/// A function that can be called once with the arguments in the tuple `Args`: every `FnOnce` of 0 to 8 arguments.
///
/// ```
/// use greenroom::Call;
///
/// fn twice<F: Call<(u32,), Output = u32>>(f: F) -> u32 {
///     f.call((21,))
/// }
/// assert_eq!(twice(|n: u32| 2 * n), 42);
/// ```
pub trait Call<Args> {
    /// What it returns.
    type Output;

    /// Calls it.
    fn call(self, args: Args) -> Self::Output;
}

macro_rules! call {
    ($($arg:ident)*) => {
        impl<F, R, $($arg),*> Call<($($arg,)*)> for F
        where
            F: FnOnce($($arg),*) -> R,
        {
            type Output = R;

            #[inline]
            fn call(self, ($($arg,)*): ($($arg,)*)) -> R {
                self($($arg),*)
            }
        }
    };
}

// The names of types serve as names of values too.
#[allow(non_snake_case)]
mod arities {
    use super::Call;

    call!();
    call!(A);
    call!(A B);
    call!(A B C);
    call!(A B C D);
    call!(A B C D E);
    call!(A B C D E G);
    call!(A B C D E G H);
    call!(A B C D E G H I);
}
