-- Haskell: refused as a whole.
main :: IO ()
main = print (sum [x | x <- [1 .. 1000 :: Int], x `mod` 3 == 0])
